import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '#test/support/free-port.ts'
import { ownRecordings, type RecordedProtocol } from '#test/support/recordings.ts'
import { type Conversation, conversations } from './conversations.ts'
import { pathOf, protocols, refused, requestFor } from './requests.ts'
import { install, litellmProviders, startLitellm, startLlamaServer } from './servers.ts'

/**
 * `bun run record` makes the recordings in `test/recordings` again: it installs the servers with
 * pip in a folder of its own, which takes minutes the first time, asks them, and stores the bodies
 * of their answers as they are. Ids, times and timings differ each time.
 */

/** LiteLLM repeats most of what its upstream says, so these are enough. */
const throughLitellm = new Set([
  'text',
  'text-unicode',
  'text-limit',
  'reasoning',
  'tool-call',
  'tool-call-after-reasoning',
  'tool-calls-parallel',
  'error-notation',
])

/** The names of recordings are unique, because tests use them as names of models. */
const apiOf = { 'chat-completions': 'chat', responses: 'responses', messages: 'messages' }

type Asked = { server: string; baseUrl: string; model: string; conversation: Conversation }

const programsFolder = join(tmpdir(), 'sluice-recording')
const folder = mkdtempSync(join(tmpdir(), 'sluice-recorded-'))
const port = freePort()
const llama = await install('llama.cpp', programsFolder)
const litellm = await startLitellm(await install('litellm', programsFolder), folder, port)

for (const protocol of protocols) {
  mkdirSync(join(ownRecordings, protocol), { recursive: true })
  for (const name of readdirSync(join(ownRecordings, protocol))) {
    rmSync(join(ownRecordings, protocol, name))
  }
}
try {
  for (const conversation of conversations) {
    const { baseUrl, stop } = await startLlamaServer(llama, folder, { ...conversation, port })
    try {
      await recordAll({ server: 'llama.cpp', baseUrl, model: 'tiny', conversation })
      if (conversation.name === 'text') await recordRefusals(baseUrl)
      if (!throughLitellm.has(conversation.name)) continue
      for (const model of Object.keys(litellmProviders)) {
        const server = `litellm-${model}`
        await recordAll({ server, baseUrl: litellm.baseUrl, model, conversation })
      }
    } finally {
      await stop()
    }
  }
} finally {
  await litellm.stop()
  rmSync(folder, { recursive: true })
}

async function recordAll({ server, baseUrl, model, conversation }: Asked): Promise<void> {
  for (const protocol of protocols) {
    const asked = requestFor(protocol, conversation)
    if (asked === null) continue
    if (!(litellmProviders[model]?.includes(protocol) ?? true)) continue
    const name = `${server}-${apiOf[protocol]}-${conversation.name}`
    const usage = protocol === 'chat-completions' ? { stream_options: { include_usage: true } } : {}
    const streamed = { ...usage, ...asked, model, stream: true }
    await record(protocol, `${name}.sse`, `${baseUrl}${pathOf[protocol]}`, streamed)
    await record(protocol, `${name}.json`, `${baseUrl}${pathOf[protocol]}`, { ...asked, model })
  }
}

async function recordRefusals(baseUrl: string): Promise<void> {
  for (const protocol of protocols) {
    for (const [name, body] of Object.entries(refused[protocol])) {
      const url = `${baseUrl}${pathOf[protocol]}`
      await record(protocol, `llama.cpp-${apiOf[protocol]}-${name}.json`, url, {
        ...body,
        model: 'tiny',
      })
    }
  }
}

async function record(
  protocol: RecordedProtocol,
  name: string,
  url: string,
  body: object,
): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    // The next server has the same port.
    keepalive: false,
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(body),
  })
  const bytes = await answer.bytes()
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  const ours = [programsFolder, folder, homedir(), '127.0.0.1']
  const found = ours.filter((secret) => text.includes(secret))
  if (found.length > 0) throw new Error(`${name} names this machine: ${found.join(', ')}`)
  const isStream = answer.headers.get('content-type')?.includes('event-stream') ?? false
  // A refused stream is a body.
  const file = isStream ? name : name.replace('.sse', '-refused.json')
  writeFileSync(join(ownRecordings, protocol, file), bytes)
  process.stdout.write(`${answer.status} ${bytes.length} ${protocol}/${file}\n`)
}
