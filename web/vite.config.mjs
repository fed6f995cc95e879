/** Builds the dashboard into `dist/pages`, which the node serves under `/dashboard`. */

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const HERE = dirname(fileURLToPath(import.meta.url));

export default defineConfig({
  root: HERE,
  base: '/dashboard/',
  // Inlined files would be `data:` addresses, which the policy of the page refuses.
  build: { outDir: join(HERE, '..', 'dist', 'pages'), emptyOutDir: true, assetsInlineLimit: 0, target: 'es2022' },
  worker: { format: 'es' },
  // `npx vite web` for work on the pages, beside a node on its own port.
  server: {
    proxy: Object.fromEntries(
      ['/collections', '/cluster', '/telemetry', '/metrics', '/aliases', '/snapshots', '/issues', '/openapi.json', '/docs'].map((path) => [
        path,
        'http://127.0.0.1:6333',
      ]),
    ),
  },
});
