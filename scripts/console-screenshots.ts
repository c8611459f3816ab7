/**
 * `bun run console:screenshots` renews the pictures of docs/console.md: every page of the console, light
 * and dark, on a gateway of its own with some data in it. Arguments name the pages to renew: `start speech`.
 * SLUICE_TEST_VOICE (`.ci/voice`) and pocketsphinx let it speak and recognise words.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import puppeteer, { type Browser, type Page } from 'puppeteer-core'
import { pocketsphinxCommand, pocketsphinxExists } from '#test/support/pocketsphinx/engine.ts'
import { speechFile, speechToolsExist } from '#test/support/speech-material.ts'

const root = join(import.meta.dir, '..')
const pictures = join(root, 'docs/console')
const viewport = { width: 1_200, height: 860 }
const quality = 45
const bytesMax = 1_500_000
const startMs = 300_000
const stepMs = 240_000
const speechMs = 6_000
const wanted = process.argv.slice(2)
const isWanted = (name: string) => wanted.length === 0 || wanted.includes(name)

const executablePath = Bun.which('chromium') ?? Bun.which('google-chrome')
if (executablePath === null) throw new Error('Chromium is missing: apt-get install chromium')

const work = mkdtempSync(join(tmpdir(), 'sluice-pictures-'))
const hasSpeech = speechToolsExist && pocketsphinxExists
async function startGateway() {
  const config = join(work, 'sluice.toml')
  const engine = `[[engine]]\nname = "pocketsphinx"\nkind = "exec"\nlanguages = ["en"]\ncommand = ${JSON.stringify(pocketsphinxCommand())}\n`
  writeFileSync(config, hasSpeech ? engine : '')
  const child = Bun.spawn([process.execPath, 'src/main.ts'], {
    cwd: root,
    env: {
      ...process.env,
      ...{ HOST: '127.0.0.1', PORT: '0', SLUICE_CONFIG: config, SLUICE_DATA: join(work, 'data') },
      DATABASE_URL: '',
      SLUICE_FLITE_PACKAGE: process.env['SLUICE_TEST_VOICE'] ?? '',
    },
    stdout: 'ignore',
    // The greeting with the link.
    stderr: 'pipe',
  })
  const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader()
  let printed = ''
  const deadline = setTimeout(() => child.kill(), startMs)
  for (;;) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`The gateway did not start:\n${printed}`)
    printed += value
    const link = /https?:\/\/\S+#code=[\w-]+/.exec(printed)?.[0]
    if (link === undefined) continue
    clearTimeout(deadline)
    // What follows is not needed, but has to be read.
    void (async () => {
      while (!(await reader.read()).done);
    })()
    return { process: child, link }
  }
}

function openBrowser(path: string): Promise<Browser> {
  const voice = join(work, 'voice.wav')
  if (hasSpeech) writeFileSync(voice, speechFile('fox', 'wav'))
  return puppeteer.launch({
    executablePath: path,
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
      ...['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'],
      ...(hasSpeech ? [`--use-file-for-fake-audio-capture=${voice}%noloop`] : []),
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ],
  })
}

type Started = Awaited<ReturnType<typeof startGateway>>

async function takePictures(browser: Browser, { link }: Pick<Started, 'link'>): Promise<void> {
  const page = await browser.newPage()
  page.setDefaultTimeout(stepMs)
  await page.setViewport(viewport)
  await page.goto(link, { waitUntil: 'networkidle0' })
  await page.waitForSelector('.rail')
  await addData(page)
  const links = await page.$$eval('.rail nav a', (all) =>
    all.map((link) => link.getAttribute('href')),
  )
  for (const path of links) {
    const name = path?.replace(/^\/console\/?/, '') || 'start'
    if (path === null || !isWanted(name)) continue
    await page.evaluate(`document.querySelector('.rail a[href="${path}"]').click()`)
    await settle(page)
    await preparations[path]?.(page)
    await takeBoth(page, name)
    if (name !== 'speech') continue
    await press(page, 'Text to speech')
    await settle(page)
    await press(page, 'Speak')
    await page.waitForFunction(`/Ended|No model/.test(document.body.innerText)`)
    await takeBoth(page, 'voices')
  }
}

async function takeBoth(page: Page, name: string): Promise<void> {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value: scheme },
      { name: 'prefers-reduced-motion', value: 'reduce' },
    ])
    await settle(page)
    const fault = await page.evaluate(flaw)
    if (fault !== null) throw new Error(`${name}: ${fault}`)
    const file = join(pictures, `${name}-${scheme}.webp`) as `${string}.webp`
    await page.screenshot({ path: file, type: 'webp', quality })
  }
}

/** What no picture shows: a failure, or a table that is cut off. */
const flaw = `document.querySelector('.page .notice.bad')?.innerText ??
  ([...document.querySelectorAll('.table-box')].some((box) => box.scrollWidth > box.clientWidth)
    ? 'a table is wider than its box' : null)`

/** Until nothing is being loaded; the last frame has the colours of the scheme. */
async function settle(page: Page): Promise<void> {
  await page.waitForFunction(
    `document.querySelector('.page h1') !== null && document.querySelector('.skeleton, [aria-busy=true]') === null`,
  )
  await page.waitForNetworkIdle({ idleTime: 300, concurrency: 1 })
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 150)))')
}

const press = (page: Page, name: string) =>
  page.evaluate(`[...document.querySelectorAll('button')].find((one) =>
    (one.getAttribute('aria-label') ?? one.textContent.trim()) === ${JSON.stringify(name)})?.click()`)

/** What a page shows is more telling after some work with it. */
const preparations: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async '/console/playground'(page) {
    await page.waitForFunction(
      `[...document.querySelectorAll('option')].some(({ value }) => value === 'demo-reasoning')`,
    )
    await page.select('select', 'demo-reasoning')
    await page.type('.composer textarea', 'What is a weir?')
    await page.keyboard.press('Enter')
    await page.waitForFunction(`document.querySelector('.answer')?.innerText.includes('tokens/s')`)
  },
  async '/console/speech'(page) {
    await press(page, 'Start recording')
    await Bun.sleep(speechMs)
    await press(page, 'Stop')
    await page.waitForFunction(`document.body.innerText.includes('Ready')`)
  },
}

/** A few keys, groups, files and requests, with the session of the page. */
async function addData(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    const send = (path, body, method = 'POST') => fetch(path, {
      method,
      headers: { 'x-sluice-csrf': '1', ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }) },
      body: body instanceof FormData ? body : JSON.stringify(body),
    }).then(async (response) => {
      if (!response.ok) throw new Error(path + ': ' + await response.text())
      return response.headers.get('content-type')?.includes('json') ? response.json() : response.text()
    })
    for (const name of ['build server', 'nightly report', 'notebook of Ann']) await send('/v1/api-keys', { name })
    for (const [name, description] of [['research', 'Large models and files'], ['support', 'The agent of the help desk']]) {
      await send('/v1/groups', { name, description, permissions: ['can_access_api'] })
    }
    await send('/v1/service-accounts', { name: 'indexer', groups: ['research'] })
    await send('/v1/agents', { name: 'Contract reader', description: 'Answers questions about our contracts.', model: 'demo', instructions: 'Answer briefly and cite the passage.', visibility: { kind: 'everyone' } })
    await send('/v1/agents', { name: 'Help desk', description: 'First answers to tickets.', model: 'demo-fast' })
    const folder = await send('/v1/folders', { name: 'Contracts' })
    const handbook = await send('/v1/collections', { name: 'handbook' })
    const texts = {
      'harbour.md': '# Harbour\\n\\nThe harbour opens at six and closes at ten.',
      'lease.txt': 'The lease ends on the last day of June.',
      'minutes.md': '# Minutes\\n\\nThe budget was approved.',
    }
    for (const [name, text] of Object.entries(texts)) {
      const form = new FormData()
      if (name === 'lease.txt') form.append('folder_id', folder.id)
      form.append('file', new File([text], name, { type: 'text/markdown' }))
      const { id } = await send('/v1/files', form)
      if (name !== 'minutes.md') await send('/v1/collections/' + handbook.id + '/files', { file_id: id })
    }
    for (const model of ['demo', 'demo', 'demo-fast', 'demo-reasoning', 'demo-fast', 'demo']) {
      await send('/v1/responses', { model, input: 'What is a weir?', store: false })
    }
  })()`)
}

const gateway = await startGateway()
try {
  if (wanted.length === 0) rmSync(pictures, { recursive: true, force: true })
  mkdirSync(pictures, { recursive: true })
  const browser = await openBrowser(executablePath)
  try {
    await takePictures(browser, gateway)
  } finally {
    await browser.close()
  }
  const bytes = readdirSync(pictures).reduce(
    (sum, name) => sum + statSync(join(pictures, name)).size,
    0,
  )
  console.log(`${readdirSync(pictures).length} pictures, ${Math.round(bytes / 1_000)} KB`)
  if (bytes > bytesMax) throw new Error(`The pictures may have ${bytesMax} bytes together.`)
} finally {
  gateway.process.kill()
  await gateway.process.exited
  rmSync(work, { recursive: true, force: true })
}
