/** A real Chromium for tests of the dashboard, which is skipped where the machine has none. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { TestContext } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';

const PLACES = [process.env.TROUPE_CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const program = PLACES.find((path) => path !== '' && existsSync(path));

/** Why the tests are skipped; false where they run. */
export const withoutChromium: string | false =
  program === undefined
    ? 'SKIPPED: there is no Chromium on this machine (Debian: apt-get install chromium; or name it in TROUPE_CHROMIUM)'
    : false;

/** Nothing of Chromium's own asks other hosts. */
const OPTIONS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** A busy machine takes many times as long as a quiet one. */
const PATIENCE_MS = 150_000;
const NOTHING_LOADS = "!document.body.innerText.includes('Loading …')";
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

export interface Dashboard {
  readonly page: Page;
  /** Goes to a page by what follows `#/`. */
  go(path: string): Promise<void>;
  /** Resolves when no part of the page waits for its figures. */
  untilLoaded(): Promise<void>;
  /** Fails with what a user of assistive technology would stumble over (WCAG A and AA). */
  checkAccess(): Promise<void>;
}

let browser: Promise<Browser> | null = null;

/** A dashboard in a context of its own. After the test it must have asked no other host and met no error. */
export async function openDashboard(
  t: TestContext,
  url: string,
  options: { readonly dark?: boolean; readonly width?: number } = {},
): Promise<Dashboard> {
  const context = await (await launchBrowser()).newContext({
    viewport: { width: options.width ?? 1280, height: 900 },
    colorScheme: options.dark ? 'dark' : 'light',
    // The policy of the page refuses scripts of others, and axe is one.
    bypassCSP: true,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const strange: string[] = [];
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== new URL(url).origin)
      strange.push(`asked ${request.url()}`);
  });
  page.on('pageerror', (error) => strange.push(String(error)));
  t.after(async () => {
    await context.close();
    assert.deepEqual(strange, []);
  });
  return {
    page,
    go: async (path) => {
      await page.goto(`${url}/dashboard#/${path}`);
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      await page.waitForFunction(NOTHING_LOADS);
    },
    untilLoaded: async () => {
      await page.waitForFunction(NOTHING_LOADS);
    },
    checkAccess: async () => {
      await page.evaluate(readFileSync(AXE, 'utf8'));
      const violations = await page.evaluate(async () => {
        // biome-ignore lint/suspicious/noExplicitAny: a global of the script above
        const { violations } = await (globalThis as any).axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
        return (violations as { id: string; nodes: { html: string }[] }[]).map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
      });
      assert.deepEqual(violations, []);
    },
  };
}

/** The browser that all tests of a file share. */
export function launchBrowser(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath: program as string, args: OPTIONS });
  return browser;
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
}
