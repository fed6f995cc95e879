/** Where the dashboard is that comes with Troupe; apart from what serves it, which is loaded with the first request that needs it. */

import { fileURLToPath } from 'node:url';

export const OWN_PAGES = fileURLToPath(new URL('../../pages', import.meta.url));
