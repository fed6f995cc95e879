/** `troupe explain`: how a query is answered, and what would make it cheaper. */

import { argumentWords, jsonLine, readArguments } from '../client/arguments.js';
import { apiPath, CONNECTION_USAGE, withNode } from '../client/connection.js';
import { EXIT, type Tool, ToolError } from '../client/tool.js';
import { explanationText, type ToldExplanation } from './explanation-text.js';
import { QUERY_OPTIONS, QUERY_OPTIONS_USAGE, queryBody } from './query.js';

export const EXPLAIN_TOOL: Tool = {
  usage: `Usage: troupe explain <collection> (--vector <json> | --id <id> | --text <text> | --body <json>) [options]

Carries a query out, and shows for each shard and segment the plan and its reason, what was scored and read, and where the time went;
and what an index would save:

  troupe explain cities --vector '[0.2, 0.1, 0.9, 0.7]' --filter '{"must": [{"key": "city", "match": {"value": "Berlin"}}]}'

Options:
${QUERY_OPTIONS_USAGE}
${CONNECTION_USAGE}`,
  run(args, out) {
    const { positionals, values } = readArguments(args, QUERY_OPTIONS);
    const [collection = ''] = argumentWords(null, positionals, 'collection');
    return withNode(values, async (node) => {
      const path = apiPath`/collections/${collection}/points/query`;
      const answer = await node.answer('POST', path, { ...(await queryBody(values)), explain: true });
      const explanation = answer.explain as ToldExplanation | undefined;
      if (explanation === undefined) throw new ToolError('this node does not explain queries: its release is older', EXIT.refused);
      out(values.json === true ? jsonLine(explanation) : explanationText(explanation));
      return 0;
    });
  },
};
