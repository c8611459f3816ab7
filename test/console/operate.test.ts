import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defaultModel } from '#models/gguf-models.ts'
import { runtimePackages } from '#speech/engines/local/package.ts'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'
import { eventually } from '#test/support/eventually.ts'
import { lacksLlama, llamaPackage, quietSettings } from '#test/support/llama.ts'
import { publishModel } from '#test/support/model-hub.ts'
import { startModelOrigin } from '#test/support/model-origin.ts'
import { startPackageRegistry } from '#test/support/package-registry.ts'
import { tinyGguf } from '#test/support/tiny-gguf.ts'
import { ggufOf } from '../installer/installer-fixture.ts'

describe.skipIf(isBrowserMissing)('models and usage in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  const stateOf = async (name: string) => {
    const headers = { authorization: `Bearer ${await site.gateway.token(['admins'])}` }
    const answer = await (await site.gateway.request('/v1/upstreams', { headers })).json()
    const { data } = answer as { data: { name: string; state: string }[] }
    return data.find((upstream) => upstream.name === name)?.state
  }

  test('an upstream is drained after a confirmation, and put back', async () => {
    const { page, faults, open, press, shows, hides, expectAccessible } = await openPage()
    await open('/models', 'Models')
    await press('Drain demo')
    await shows('Take demo out of service?')
    await press('Cancel')
    await hides('Take demo out of service?')
    expect(await stateOf('demo')).toBe('available')
    await press('Drain demo')
    await press('Drain')
    await shows('demo is out of service')
    expect(await stateOf('demo')).toBe('draining')
    await expectAccessible()
    await press('Put back demo')
    await shows('demo is back in service')
    expect(await stateOf('demo')).toBe('available')
    expect(faults).toEqual([])
    await page.close()
  })

  test('the catalogue finds a model, and opens it in the playground', async () => {
    const { page, faults, open, fill, press, shows, hides } = await openPage()
    await open('/models', 'Models')
    await fill('Search models', 'reason')
    await hides('demo-fast')
    await press('Try demo-reasoning in the playground')
    await shows('Ask something')
    await page.waitForFunction(`document.querySelector('select').value === 'demo-reasoning'`)
    expect(faults).toEqual([])
    await page.close()
  })

  test('usage shows a request of the day by model, and as CSV', async () => {
    await site.gateway.post('/v1/responses', { model: 'demo-fast', input: 'Count me' })
    // The ledger writes in batches.
    await eventually('the request is in the ledger', async () => {
      const usage = await site.gateway.request('/v1/usage?group_by=model')
      return (await usage.text()).includes('demo-fast')
    })
    const { page, faults, open, press, shows, expectAccessible } = await openPage()
    await open('/usage', 'Usage')
    for (const span of ['24 h', '30 days']) {
      await press(span)
      await shows('demo-fast')
      await page.waitForFunction(`[...document.querySelectorAll('.chart-bar rect:not(.chart-hit)')]
        .some((bar) => Number(bar.getAttribute('height')) > 0)`)
    }
    await expectAccessible()
    await press('Key')
    await shows('With a token or session')
    await page.evaluate(`{
      const create = URL.createObjectURL
      URL.createObjectURL = (file) => {
        file.text().then((saved) => { window.saved = saved })
        return create.call(URL, file)
      }
    }`)
    await press('CSV')
    await page.waitForFunction(`window.saved?.includes('demo-fast')`)
    expect(faults).toEqual([])
    await page.close()
  })
})

const hub = await startModelOrigin()
const registry = startPackageRegistry()
const registryVariable = 'NPM_CONFIG_REGISTRY'
const registryBefore = process.env[registryVariable]
process.env[registryVariable] = registry.url
afterAll(async () => {
  if (registryBefore === undefined) delete process.env[registryVariable]
  else process.env[registryVariable] = registryBefore
  await registry.stop()
  await hub.stop()
})

describe.skipIf(isBrowserMissing)('the installer in a browser (needs chromium)', () => {
  const { open: openPage } = useConsole({
    environment: { SLUICE_MODELS: mkdtempSync(join(tmpdir(), 'sluice-models-')) },
    installer: {
      ...{ hubUrl: hub.url, hosts: ['*'], ports: [], privateHosts: true, reserveBytes: 0 },
    },
  })

  test('a refused source says why in the dialog, and Escape closes it', async () => {
    const { page, open, press, fill, choose, shows, hides, expectAccessible } = await openPage()
    await open('/installer', 'Local models')
    await shows('No local models')
    await expectAccessible()
    await press('Install a model')
    await choose('Source', 'url')
    await fill('Model', 'not a url')
    await page.keyboard.press('Enter')
    await page.waitForSelector('dialog .notice.bad')
    await expectAccessible()
    await page.keyboard.press('Escape')
    await hides('Expected SHA-256')
    const focused = await page.evaluate('document.activeElement.textContent')
    expect(focused).toBe('Install a model')
    await page.close()
  })

  test('a runtime is installed, then its default model, without a restart', async () => {
    const model = 'csukuangfj/sherpa-onnx-whisper-base'
    registry.publish(runtimePackages(process))
    publishModel(hub, model, { 'base-tokens.txt': new TextEncoder().encode('a 0') })
    registry.hold()
    const { page, faults, open, press, shows, hides, expectAccessible } = await openPage()
    await open('/installer', 'Local models')
    await press('Install Speech recognition')
    await shows('Download of Speech recognition started')
    await press('Log')
    await shows('Installing sherpa-onnx-node@')
    await press('Close')
    await expectAccessible()
    registry.release()
    await shows('Speech recognition is installed')
    await press(`Install the model: ${model}`)
    await shows(`${model} is installed`)
    await hides('Default model:')
    await expectAccessible()
    expect(faults).toEqual([])
    await page.close()
  })

  test('a model of a hub is installed with progress, pause and log, and another one is cancelled', async () => {
    const pace = { bytes: 4_096, everyMs: 40 }
    publishModel(hub, 'org/small', { 'weights.gguf': ggufOf(600_000) }, { pace })
    publishModel(hub, 'org/slow', { 'weights.gguf': ggufOf(900_000) }, { pace })
    const visited = await openPage()
    const { page, faults, open, press, fill, shows, hides, expectAccessible } = visited
    const install = async (model: string) => {
      await press('Install a model')
      await fill('Model', model)
      await page.keyboard.press('Enter')
    }
    await open('/installer', 'Local models')
    await install('org/small')
    await page.waitForFunction(`Number(document.querySelector('.download .progress')
      ?.getAttribute('aria-valuenow')) > 0`)
    // Speed and time left.
    await page.waitForFunction(
      `/B\\/s · .+ left/.test(document.querySelector('.download').innerText)`,
    )
    await press('Pause')
    await shows('Download of org/small paused')
    await shows('Paused')
    await expectAccessible()
    await press('Log')
    await page.waitForFunction(`document.querySelectorAll('dialog .events li').length > 1`)
    await press('Close')
    await press('Resume')
    await shows('Download of org/small resumed')

    await install('org/slow')
    await page.waitForFunction(`document.querySelectorAll('.download').length === 2 ||
      document.querySelector('.download')?.innerText.includes('org/slow')`)
    await page.evaluate(`[...document.querySelectorAll('.download')]
      .find((one) => one.innerText.includes('org/slow'))
      .querySelectorAll('button').forEach((one) => one.innerText === 'Cancel' && one.click())`)
    await shows('The data downloaded so far is deleted.')
    await page.evaluate(`[...document.querySelectorAll('dialog button')]
      .find((one) => one.type === 'submit').click()`)
    await shows('Download of org/slow cancelled')
    await shows('org/small is installed')
    await hides('No local models')
    expect(faults).toEqual([])
    await page.close()
  })
})

describe.skipIf(isBrowserMissing || lacksLlama)(
  'a local model in a browser (needs chromium)',
  () => {
    const { open: openPage } = useConsole({
      environment: {
        SLUICE_MODELS: mkdtempSync(join(tmpdir(), 'sluice-models-')),
        SLUICE_LLAMA_PACKAGE: llamaPackage ?? '',
      },
      llama: { ...quietSettings, contextTokensMax: 1_024 },
      // No other setting: the hub of the configuration may be at any address.
      installer: { hubUrl: hub.url, reserveBytes: 0 },
    })

    test('the default model is installed with one button and answers in the playground', async () => {
      const file = tinyGguf({ script: ['Good', ' morning'] })
      publishModel(hub, defaultModel.name, { 'Qwen3-0.6B-Q8_0.gguf': file })
      const { page, faults, open, press, shows, waitForText } = await openPage()
      await open('/installer', 'Local models')
      await press(`Install the model: ${defaultModel.name}`)
      await shows(`${defaultModel.name} is installed`)
      await open('/models', 'Models')
      await press(`Try ${defaultModel.name} in the playground`)
      await shows('Ask something')
      await page.waitForFunction(
        `document.querySelector('select').value === ${JSON.stringify(defaultModel.name)}`,
      )
      await page.focus('textarea')
      await page.keyboard.type('Greet me.')
      await page.keyboard.press('Enter')
      await waitForText('main', 'Good morning')
      expect(faults).toEqual([])
      await page.close()
    })
  },
)
