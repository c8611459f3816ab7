import { afterAll, expect, test } from 'bun:test'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { startModelHub } from '#test/support/embedding/model-hub.ts'
import { eventually } from '#test/support/eventually.ts'
import { runGatewayCommand } from '#test/support/gateway-command.ts'
import { lacksLlama, llamaPackage } from '#test/support/llama.ts'
import {
  configFile,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { tinyGguf } from '#test/support/tiny-gguf.ts'

afterAll(stopProcesses)

test.skipIf(lacksLlama)(
  'model install makes a running gateway answer with a model of the hub',
  async () => {
    const hub = startModelHub({
      'org/tiny': {
        'tiny-Q8_0.gguf': tinyGguf({ script: ['Too', ' large'] }),
        'tiny-Q4_K_M.gguf': tinyGguf({ script: ['Hello', ' there'] }),
        'mmproj-Q4_K_M.gguf': tinyGguf(),
        'README.md': new TextEncoder().encode('# Tiny'),
      },
    })
    const dataFolder = temporaryFolder()
    // The runtime from the package registry is the same for all tests.
    symlinkSync(llamaPackage ?? '', join(dataFolder, 'llama'))
    const settings = configFile(
      `[installer]\nhub_url = "${hub.url}"\n[models]\nrefresh_ms = 200\n[llama]\nthreads = 1\n`,
    )
    const gateway = await startGatewayProcess({
      dataFolder,
      environment: { SLUICE_CONFIG: settings },
    })
    expect(
      await runGatewayCommand(['model', 'install', 'org/tiny'], { dataFolder, settings }),
    ).toEqual([
      expect.stringContaining('"tiny-Q4_K_M.gguf" is complete; its hash is verified.'),
      expect.stringContaining('org/tiny is installed (1 MB)'),
      0,
    ])
    expect(hub.downloads()).toBe(1)
    await hub.stop()
    await eventually('the model is offered', async () => {
      const models = await gateway.request('/v1/models')
      return (await models.text()).includes('"org/tiny"')
    })
    const answer = await gateway.request('/v1/responses', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'org/tiny', input: 'Say hello.' }),
    })
    expect(await answer.json()).toMatchObject({
      status: 'completed',
      output: [{ content: [{ text: 'Hello there' }] }],
    })
  },
)
