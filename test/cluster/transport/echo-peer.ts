/** A peer as a process of its own: asks for whatever it was told to be applied. Arguments: peer id, port, address of peer 1. */

import { openPeerTransport } from '../../../cluster/transport/open.js';
import { CLUSTER, Heard } from './support.js';

const [id, port, uri] = process.argv.slice(2) as [string, string, string];
const transport = await openPeerTransport({ host: '127.0.0.1', port: Number(port), release: '0.1.0' });
const heard = new Heard();
heard.received = (from, messages) => {
  for (const message of messages) if (message.kind === 'applied') transport.send(from, [{ kind: 'awaitApplied', index: message.index }]);
};
await transport.start({ peerId: Number(id), clusterId: () => CLUSTER }, heard);
transport.setPeers(new Map([[1, uri]]));
