import puppeteer, { type Browser, type BrowserContext, type Page } from 'puppeteer-core'
import { helperTimeoutMs } from './time-limits.ts'

/**
 * A real headless browser. Its tests are skipped where it is not installed, except in continuous
 * integration, which installs it.
 */
const executable = Bun.which('chromium') ?? Bun.which('google-chrome')
export const isBrowserMissing = executable === null && process.env['CI'] !== 'true'

/** Null: its tests are skipped. */
export const firefox = Bun.which('firefox-esr') ?? Bun.which('firefox')

/** How often a page is asked for what a test waits for. Puppeteer's default draws every frame for it. */
const lookMs = 50

export async function openBrowser(args: readonly string[] = []): Promise<Browser> {
  if (executable === null) throw new Error('Chromium is missing: apt-get install chromium')
  return puppeteer.launch({
    executablePath: executable,
    args: [
      // The tests may be run by root, whom it refuses otherwise.
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      // Whatever is asked past the interception below finds no host.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      ...args,
    ],
  })
}

export async function openFirefox(): Promise<Browser> {
  if (firefox === null) throw new Error('Firefox is missing: apt-get install firefox-esr')
  return puppeteer.launch({ browser: 'firefox', executablePath: firefox })
}

export type Visit = {
  readonly page: Page
  /**
   * Requests to other hosts (which are refused), and failures reported by the console or a script.
   */
  readonly faults: readonly string[]
  /** Resolves when the elements that match the selector show this text. */
  waitForText(selector: string, text: string): Promise<void>
}

/** `otherHosts`: what the page may load besides its own, such as its identity provider. */
export async function visit(
  browser: Browser | BrowserContext,
  url: string,
  otherHosts: readonly string[] = [],
): Promise<Visit> {
  const page = await browser.newPage()
  const faults: string[] = []
  page.setDefaultTimeout(helperTimeoutMs)
  const waitForFunction = page.waitForFunction.bind(page)
  page.waitForFunction = (condition, options, ...args) =>
    waitForFunction(condition, { polling: lookMs, ...options }, ...args)
  await page.setViewport({ width: 1280, height: 900 })
  await page.setRequestInterception(true)
  page.on('request', (request) => {
    const isOwn =
      request.url().startsWith('data:') ||
      isSameHost(request.url(), url) ||
      otherHosts.includes(new URL(request.url()).host)
    if (!isOwn) faults.push(`request to ${request.url()}`)
    void (isOwn ? request.continue() : request.abort('blockedbyclient'))
  })
  page.on('console', (message) => {
    if (['error', 'warn'].includes(message.type())) faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`script: ${error}`))
  await page.goto(url, { waitUntil: 'networkidle0' })
  return {
    page,
    faults,
    async waitForText(selector, text) {
      const place = `document.querySelector(${JSON.stringify(selector)})`
      await page.waitForFunction(`${place}?.innerText.includes(${JSON.stringify(text)})`)
    },
  }
}

/** Includes URLs that a page created: `blob:http://…`. */
function isSameHost(url: string, own: string): boolean {
  return new URL(url.replace(/^blob:/, '')).host === new URL(own).host
}
