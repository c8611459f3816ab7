import { afterAll, beforeAll, expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Browser, ElementHandle, Page } from 'puppeteer-core'
import { openBrowser, type Visit, visit } from './browser.ts'
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts'

const axeSource = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

const stillness = { name: 'prefers-reduced-motion', value: 'reduce' }

export type ConsoleVisit = Visit & {
  /** Follows a link of the navigation, and waits for the title of its page. */
  open(path: string, title: string): Promise<void>
  /** Clicks the first button or link with this accessible name. */
  press(name: string): Promise<void>
  /** Types into the control with this label. */
  fill(label: string, text: string): Promise<void>
  choose(label: string, value: string): Promise<void>
  /** Clicks the checkbox with this label. */
  check(label: string): Promise<void>
  /** Chooses files with the control that this selector finds. */
  upload(selector: string, ...paths: readonly string[]): Promise<void>
  /** Waits until the page shows a text. */
  shows(text: string): Promise<void>
  hides(text: string): Promise<void>
  /** Expects no violation of the rules of accessibility; those about colours also in dark ones. */
  expectAccessible(): Promise<void>
}

/** A browser, with arguments of its own, and a gateway for the tests of a file. */
export function useConsole(options: GatewayOptions = {}, browserArgs: readonly string[] = []) {
  const site = {} as { browser: Browser; gateway: Gateway }
  beforeAll(async () => {
    site.browser = await openBrowser(browserArgs)
    site.gateway = await startGateway(options)
  })
  afterAll(async () => {
    await site.browser.close()
    await site.gateway.stop()
  })
  return {
    site,
    open: (given: { groups?: readonly string[]; path?: string } = {}) =>
      openConsole(site.browser, site.gateway, given),
  }
}

/** A browser tab that is logged in with a token. */
async function openConsole(
  browser: Browser,
  gateway: Gateway,
  { groups = ['admins'], path = '/' }: { groups?: readonly string[]; path?: string } = {},
): Promise<ConsoleVisit> {
  const context = await browser.createBrowserContext()
  const visited = await visit(context, `${gateway.url}/console${path}`)
  const { page } = visited
  const controls = controlsOf(page)
  // What still moves is clicked where it was.
  await page.emulateMediaFeatures([stillness])
  await controls.fill('Token or API key', await gateway.token(groups))
  await controls.press('Log in')
  await page.waitForSelector('.rail')
  return { ...visited, ...controls }
}

/** Clicks that met the page around a button. */
const clicksMax = 5

/** Notes what the next click of the page meets. */
const watchClick = new Function(
  'button',
  `addEventListener('click', ({ target }) => {
    button.met = button.contains(target) ? 'button' : target.closest('a, button, input, label, select, summary, textarea')?.outerHTML ?? 'nothing'
  }, { capture: true, once: true })`,
) as (button: unknown) => void

/**
 * A list that arrives between the look for a button and the click may move the button away. A click that
 * met nothing is repeated; one that met another control fails.
 */
async function clickOn(button: ElementHandle, name: string): Promise<void> {
  for (let clicks = 1; ; clicks++) {
    await button.evaluate(watchClick)
    await button.click()
    // A click that leaves the page takes the button with it.
    const met = await button
      .evaluate((one) => (one as { met?: string }).met ?? 'nothing')
      .catch(() => 'button')
    if (met === 'button') return
    if (met !== 'nothing' || clicks === clicksMax) throw new Error(`"${name}": met ${met}`)
  }
}

/** The options of a list may arrive after it. */
const hasOption = new Function(
  'select',
  'value',
  'return [...select.options].some((option) => option.value === value)',
) as (select: unknown, value: string) => boolean

export function controlsOf(page: Page) {
  const find = async (expression: string) => {
    const handle = await page.waitForFunction(expression)
    return handle.asElement() as ElementHandle
  }
  // A dialog has its fields before it is open.
  const field = (label: string) =>
    find(`[...document.querySelectorAll('input, select, textarea')].find((one) =>
      one.checkVisibility() && (one.getAttribute('aria-label') ??
        document.querySelector('label[for="' + one.id + '"]')?.firstChild?.textContent.trim()
      ) === ${JSON.stringify(label)})`)
  return {
    async shows(text: string) {
      await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(text)})`)
    },
    async hides(text: string) {
      await page.waitForFunction(`!document.body.innerText.includes(${JSON.stringify(text)})`)
    },
    async open(path: string, title: string) {
      await page.click(`.rail a[href="/console${path}"]`)
      await page.waitForFunction(
        `document.querySelector('h1')?.innerText === ${JSON.stringify(title)}`,
      )
    },
    async press(name: string) {
      // What lies behind a modal cannot be clicked.
      const button =
        await find(`[...([...document.querySelectorAll('dialog[open]')].at(-1) ?? document)
        .querySelectorAll('button, a, summary')].find(
        (one) => !one.disabled && one.checkVisibility() &&
          (one.getAttribute('aria-label') ?? one.textContent.trim()) === ${JSON.stringify(name)})`)
      await clickOn(button, name)
    },
    async fill(label: string, text: string) {
      const input = await field(label)
      await input.focus()
      await page.keyboard.down('Control')
      await page.keyboard.press('a')
      await page.keyboard.up('Control')
      await page.keyboard.type(text)
    },
    async check(label: string) {
      const found = await find(`[...document.querySelectorAll('.choice label')].find(
        (one) => (one.firstChild?.textContent ?? '').trim() === ${JSON.stringify(label)})`)
      await found.click()
    },
    async upload(selector: string, ...paths: readonly string[]) {
      await page.waitForSelector(selector)
      const [chooser] = await Promise.all([
        page.waitForFileChooser(),
        page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`),
      ])
      await chooser.accept([...paths])
    },
    async choose(label: string, value: string) {
      const select = await field(label)
      await page.waitForFunction(hasOption, {}, select, value)
      await select.select(value)
    },
    async expectAccessible() {
      for (const scheme of ['light', 'dark'] as const) {
        await page.emulateMediaFeatures([
          { name: 'prefers-color-scheme', value: scheme },
          stillness,
        ])
        expect(await findViolations(page, scheme), `${page.url()} in ${scheme}`).toEqual([])
      }
    },
  }
}

/** A scheme changes colours and nothing else. */
const rules = {
  light: {},
  dark: { runOnly: ['color-contrast', 'link-in-text-block'] },
}

async function findViolations(page: Page, scheme: keyof typeof rules): Promise<unknown> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axeSource)
  // The frame after the next one has the colours of the scheme.
  await page.evaluate(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
  )
  return page.evaluate(`axe
    .run(document, { resultTypes: ['violations'], ...${JSON.stringify(rules[scheme])} })
    .then(({ violations }) => violations.map(({ id, help, nodes }) =>
      id + ': ' + help + ' ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary).slice(0, 3).join(' | ')))`)
}
