/** `npm run tables`: prints every table of moves into the README of its room. */

import { readFileSync, writeFileSync } from 'node:fs';
import { TABLES } from './list.js';
import { withSection } from './print.js';

for (const { printed } of TABLES) writeFileSync(printed.readme, withSection(readFileSync(printed.readme, 'utf8'), printed));
