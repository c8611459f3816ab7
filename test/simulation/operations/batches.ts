import { asRecord, parseJson } from '#lib/json.ts'
import { type Client, Refused } from '../client.ts'
import { ViolationError } from '../record.ts'
import { outputOf, type Prompt, promptText } from '../site/model-output.ts'
import { drawPrompt, textOf } from './model-calls.ts'
import type { OperationKind, Scene } from './operation.ts'

/** Batches over files. */
export const batches: readonly OperationKind[] = [{ kind: 'batch', weight: 2, play: runBatch }]

const linesMax = 6
const pollMs = 250
/** Afterwards the checks at the end find its outcome. */
const pollsMax = 20
const endings = new Set(['completed', 'failed', 'expired', 'cancelled'])

async function runBatch({ client, world }: Scene): Promise<void> {
  const prompts = new Map<string, Prompt>()
  const count = 1 + client.below(linesMax)
  for (let at = 0; at < count; at++) prompts.set(`line-${at}`, drawPrompt(client))
  const lines = [...prompts].map(([custom_id, prompt]) => {
    const body = { model: 'chat', input: promptText(prompt), store: false }
    return JSON.stringify({ custom_id, method: 'POST', url: '/v1/responses', body })
  })
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new File([lines.join('\n')], 'lines.jsonl'))
  const file = await client.json('/v1/files', { body: form })
  const created = await client.json('/v1/batches', {
    json: {
      input_file_id: file['id'],
      endpoint: '/v1/responses',
      completion_window: '24h',
    },
  })
  const id = String(created['id'])
  client.facts.push(id)
  world.announced.set(id, client.index)
  world.batches.set(id, { tenant: client.index, prompts, endedMs: performance.now() })
  if (client.random() < 0.2) await client.json(`/v1/batches/${id}/cancel`, { method: 'POST' })
  for (let polls = 0; polls < pollsMax; polls++) {
    if (await checkBatch(client, id, prompts)) return
    await Bun.sleep(pollMs)
  }
}

/** False: it has not ended. Each line is in one of the files once, with the output of the model. */
export async function checkBatch(
  client: Client,
  id: string,
  prompts: ReadonlyMap<string, Prompt>,
): Promise<boolean> {
  const batch = await client.json(`/v1/batches/${id}`)
  if (!endings.has(String(batch['status']))) return false
  const seen: string[] = []
  for (const fileId of [batch['output_file_id'], batch['error_file_id']]) {
    if (typeof fileId !== 'string') continue
    const path = `/v1/files/${fileId}/content`
    const reply = await client.send(path)
    if (reply.status !== 200) throw new Refused(path, reply)
    for (const text of reply.text.trimEnd().split('\n')) {
      const line = asRecord(parseJson(text))
      const name = String(line['custom_id'])
      seen.push(name)
      const response = asRecord(asRecord(line['response'])['body'])
      const prompt = prompts.get(name)
      if (prompt === undefined || response['status'] !== 'completed') continue
      if (textOf(response) !== outputOf(prompt)) fail(`${id} ${name}: ${textOf(response)}`)
    }
  }
  // A batch that ended before it was validated has no lines.
  const expected = batch['in_progress_at'] === null ? [] : [...prompts.keys()]
  if (seen.toSorted().join() !== expected.toSorted().join()) {
    fail(`${id} is ${batch['status']} with ${seen.join()} instead of ${expected.join()}`)
  }
  return true
}

function fail(detail: string): never {
  throw new ViolationError('a batch answers every line once', detail)
}
