import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type CodeClient, renderCode } from '#console/pages/playground/client-code.ts'
import { snippets } from '#console/pages/start/snippets.ts'
import { asRecord } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

const root = join(import.meta.dir, '../..')
const python = Bun.which('python-with-clients')
if (python === null)
  console.warn('skipped: python-with-clients is not on the PATH; see .ci/api-tools')

/** With what shells and languages read in a special way. */
const question = 'It\'s a "weir" at $HOME, with `ticks`, a \\ and ünï.'

const common = { model: 'demo', temperature: 0.5, stream: true }
const requests = {
  openai: { ...common, instructions: question, input: question },
  anthropic: {
    ...common,
    system: question,
    max_tokens: 4_096,
    messages: [{ role: 'user', content: question }],
  },
}

describe('programs of the console', () => {
  let gateway: Gateway
  let key: string

  beforeAll(async () => {
    gateway = await startGateway()
    const created = await gateway.post('/v1/api-keys', { name: 'programs' })
    key = String(asRecord(await created.json())['key'])
  })
  afterAll(() => gateway.stop())

  /** Those of Node find their packages from the current folder. */
  const run = async (command: readonly string[]) => {
    const child = Bun.spawn([...command], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
    const [printed, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    expect(await child.exited, errors).toBe(0)
    return printed
  }
  const commands = {
    curl: ['bash', '-c'],
    node: [process.execPath, '-e'],
    python: [String(python), '-c'],
  }

  const rendered: readonly [CodeClient, keyof typeof requests, keyof typeof commands][] = [
    ['openai-curl', 'openai', 'curl'],
    ['openai-node', 'openai', 'node'],
    ['openai-python', 'openai', 'python'],
    ['anthropic-curl', 'anthropic', 'curl'],
    ['anthropic-node', 'anthropic', 'node'],
    ['anthropic-python', 'anthropic', 'python'],
  ]
  const isRunnable = (language: keyof typeof commands) => language !== 'python' || python !== null

  test.each(rendered.filter(([, , language]) => isRunnable(language)))(
    'the request as code for %s gets its answer',
    async (client, surface, language) => {
      const request = requests[surface]
      const code = renderCode(client, { request, text: question, origin: gateway.url })
      const printed = await run([...commands[language], code.replace('YOUR_API_KEY', key)])
      expect(printed).toContain(language === 'curl' ? 'You' : `You said: ${question}`)
    },
  )

  const started: readonly [string, keyof typeof commands][] = [
    ['curl', 'curl'],
    ['node', 'node'],
    ['python', 'python'],
    ['anthropic', 'python'],
  ]
  test.each(started.filter(([, language]) => isRunnable(language)))(
    'the snippet %s of the start page gets its answer',
    async (name, language) => {
      const snippet = snippets.find((one) => one.name === name)
      const code = snippet?.code({ origin: gateway.url, key, model: 'demo' })
      const printed = await run([...commands[language], String(code)])
      expect(printed).toContain(language === 'curl' ? 'said' : 'You said: Say hello.')
    },
  )
})
