import { parseArgs } from 'node:util'
import { asRecord, parseJson } from '#lib/json.ts'
import { temporaryFolder } from './support/children.ts'
import { createDatabase } from './support/database.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { numberIn } from './support/options.ts'
import { toMebibytes, treeMemoryBytes, treeUsage } from './support/process-tree.ts'
import { writeResult } from './support/report.ts'
import { formatTable } from './support/table.ts'

export const summary =
  'One batch of 50,000 requests on two replicas: time, CPU, memory, and that none is lost.'
export const usage =
  '--database postgres://… [--quick] [--lines 50000] [--minutes 20] [--json FILE]'

const pollMs = 500
const configLines = '[batches]\nrunning_max = 16\nper_batch_max = 32\nper_owner_max = 16\n'

type Phase = { readonly name: string; readonly seconds: number }

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      lines: { type: 'string' },
      minutes: { type: 'string', default: '20' },
      database: { type: 'string' },
      json: { type: 'string' },
    },
  })
  const lines = numberIn(values.lines ?? (values.quick ? '2000' : '50000'), {
    name: 'lines',
    from: 10,
    to: 1_000_000,
  })
  const minutes = numberIn(values.minutes, { name: 'minutes', from: 1, to: 120 })
  if (values.database === undefined)
    throw new Error('--database is required: two replicas share it')
  const databaseUrl = await createDatabase(values.database)
  const dataFolder = temporaryFolder()
  const asked = new Map<string, number>()
  const upstreams = [startUpstream(asked), startUpstream(asked)]
  const replicas: Gateway[] = []
  for (const upstream of upstreams) {
    const upstreamPort = upstream.port()
    const options = {
      upstreamPort,
      upstreamApi: 'chat',
      databaseUrl,
      dataFolder,
      configLines,
    } as const
    replicas.push(await startGateway(options))
  }
  const result = await measure(replicas, { lines, limitMs: minutes * 60_000 })
  const repeated = [...asked.values()].filter((count) => count > 1).length
  const shares = upstreams.map(({ count }) => count())
  const text = `${result.text}

Requests to the upstream of each replica: ${shares.join(' and ')}; ${repeated} lines were asked more than once.
Output: ${result.answered} lines, each once: ${result.isComplete ? 'yes' : 'NO'}.`
  console.log(`\n${text}\n`)
  writeResult(
    'batch',
    { jsonFile: values.json, databaseServer: values.database },
    {
      lines,
      ...result,
      shares,
      repeated,
      text,
    },
  )
  for (const upstream of upstreams) await upstream.stop()
  return result.isComplete && repeated === 0 && shares.every((share) => share > 0) ? 0 : 1
}

/** Answers at once, and counts the requests of each line. */
function startUpstream(asked: Map<string, number>) {
  let requests = 0
  const answer = JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
  })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST')
        return Response.json({ data: [{ id: 'bench', object: 'model' }] })
      const name = /line-\d+/.exec(await request.text())?.[0] ?? ''
      asked.set(name, (asked.get(name) ?? 0) + 1)
      requests++
      return new Response(answer, { headers: { 'content-type': 'application/json' } })
    },
  })
  return {
    port: () => server.port ?? 0,
    count: () => requests,
    stop: () => server.stop(true),
  }
}

async function measure(
  replicas: readonly Gateway[],
  { lines, limitMs }: { lines: number; limitMs: number },
) {
  const [first] = replicas
  if (first === undefined) throw new Error('there is no replica')
  const token = await first.token('bench', ['users'])
  const send = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${first.port}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, ...init.headers },
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response
  }
  const cpuOf = () => replicas.reduce((sum, { pid }) => sum + treeUsage(pid).cpuMs, 0)
  const memoryOf = () => replicas.map(({ pid }) => treeMemoryBytes(pid))
  const phases: Phase[] = []
  let beganAt = performance.now()
  const end = (name: string) => {
    phases.push({ name, seconds: (performance.now() - beganAt) / 1_000 })
    beganAt = performance.now()
  }
  const id = await createBatch(send, lines)
  end('upload')
  const cpuMs = cpuOf()
  const peaks = memoryOf()
  let status = 'validating'
  let refused = 0
  let batch: Record<string, unknown> = {}
  for (const until = performance.now() + limitMs; performance.now() < until; ) {
    const read = await send(`/v1/batches/${id}`).catch(() => null)
    if (read === null) {
      refused++
      continue
    }
    batch = asRecord(await read.json())
    for (const [at, bytes] of memoryOf().entries()) peaks[at] = Math.max(peaks[at] ?? 0, bytes)
    const next = String(batch['status'])
    if (next !== status) end(status)
    status = next
    if (status === 'completed' || status === 'failed') break
    await Bun.sleep(pollMs)
  }
  const usedMs = cpuOf() - cpuMs
  const output = await (await send(`/v1/files/${batch['output_file_id']}/content`)).text()
  const ids = output
    .trimEnd()
    .split('\n')
    .map((line) => String(asRecord(parseJson(line))['custom_id']))
  const isComplete = ids.length === lines && ids.every((one, at) => one === `line-${at}`)
  const table = formatTable(
    ['phase', 'seconds'],
    phases.map(({ name, seconds }) => [name, seconds.toFixed(1)]),
  )
  const peakText = peaks.map((bytes) => toMebibytes(bytes)).join(' and ')
  const text = `${lines} lines, two replicas, at most 32 requests at a time. CPU of the replicas ${(usedMs / lines).toFixed(2)} ms per line; peak memory ${peakText} MiB. ${refused} of the requests that read the batch meanwhile failed.

${table}`
  return { text, phases, answered: ids.length, isComplete, cpuMsPerLine: usedMs / lines, peaks }
}

async function createBatch(
  send: (path: string, init?: RequestInit) => Promise<Response>,
  count: number,
): Promise<string> {
  const lines = Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      custom_id: `line-${at}`,
      method: 'POST',
      url: '/v1/responses',
      body: { model: 'bench', input: `line-${at}`, store: false },
    }),
  )
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new File([lines.join('\n')], 'lines.jsonl'))
  const file = asRecord(await (await send('/v1/files', { method: 'POST', body: form })).json())
  const created = await send('/v1/batches', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      input_file_id: file['id'],
      endpoint: '/v1/responses',
      completion_window: '24h',
    }),
  })
  return String(asRecord(await created.json())['id'])
}
