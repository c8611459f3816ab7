import { parseArgs } from 'node:util'
import { type Gateway, startGateway } from './support/gateway.ts'
import { startMockUpstream } from './support/load.ts'
import { numberIn } from './support/options.ts'
import { toMebibytes, treeMemoryBytes, treeUsage } from './support/process-tree.ts'
import { formatTable } from './support/table.ts'

export const summary = 'CPU and memory of uploading and downloading a large file.'
export const usage = '[--megabytes 1000] [--s3 http://KEY:SECRET@HOST:PORT/BUCKET]'

const megabyte = 1_000_000
const sampleEveryMs = 50
const lifetimeS = 3_600

type Step = { readonly name: string; readonly run: () => Promise<void> }
type Measured = { name: string; seconds: number; cpuMs: number; peakBytes: number }

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { megabytes: { type: 'string', default: '1000' }, s3: { type: 'string' } },
  })
  const megabytes = numberIn(values.megabytes, { name: 'megabytes', from: 1, to: 5_000 })
  const upstreamPort = await startMockUpstream(lifetimeS)
  const gateway = await startGateway({
    upstreamPort,
    upstreamApi: 'chat',
    configLines: values.s3 === undefined ? '' : bucketLines(values.s3),
  })
  const restBytes = treeMemoryBytes(gateway.pid)
  const chunk = crypto.getRandomValues(new Uint8Array(65_536))
  const bytes = megabytes * megabyte
  let id = ''
  const steps: Step[] = [
    {
      name: 'upload, form',
      run: async () => {
        id = await upload(gateway, formOf(chunk, bytes))
      },
    },
    {
      name: 'upload, raw',
      run: async () => {
        id = await upload(gateway, { path: '/v1/files?name=bare', body: pieces(chunk, bytes) })
      },
    },
    { name: 'out', run: () => download(gateway, id, bytes) },
  ]
  const measured: Measured[] = []
  for (const step of steps) measured.push(await measure(gateway, step))
  console.log(`at rest ${toMebibytes(restBytes)} MiB; ${megabytes} MB each\n`)
  console.log(format(measured, megabytes))
  return 0
}

function bucketLines(url: string): string {
  const { protocol, host, username, password, pathname } = new URL(url)
  return (
    `[s3]\nendpoint = "${protocol}//${host}"\nbucket = "${pathname.slice(1)}"\n` +
    `access_key_id = "${username}"\nsecret_access_key = "${password}"\n`
  )
}

async function measure({ pid }: Gateway, step: Step): Promise<Measured> {
  let peakBytes = 0
  const look = () => {
    peakBytes = Math.max(peakBytes, treeMemoryBytes(pid))
  }
  const timer = setInterval(look, sampleEveryMs)
  const before = treeUsage(pid).cpuMs
  const startedAt = performance.now()
  await step.run()
  const seconds = (performance.now() - startedAt) / 1_000
  clearInterval(timer)
  look()
  return { name: step.name, seconds, cpuMs: treeUsage(pid).cpuMs - before, peakBytes }
}

type Upload = { path: string; body: AsyncIterable<Uint8Array>; contentType?: string }

async function upload(gateway: Gateway, { path, body, contentType }: Upload): Promise<string> {
  const httpResponse = await fetch(`http://127.0.0.1:${gateway.port}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.bearer}`,
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    },
    body: streamOf(body),
  })
  const file = (await httpResponse.json()) as { id?: string }
  if (file.id === undefined) throw new Error(`the upload failed: ${JSON.stringify(file)}`)
  return file.id
}

function streamOf(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}

async function download(gateway: Gateway, id: string, bytes: number): Promise<void> {
  const httpResponse = await fetch(`http://127.0.0.1:${gateway.port}/v1/files/${id}/content`, {
    headers: { authorization: `Bearer ${gateway.bearer}` },
  })
  let received = 0
  for await (const chunk of httpResponse.body ?? []) received += chunk.length
  if (received !== bytes) throw new Error(`${received} bytes came back, ${bytes} went in`)
}

function formOf(chunk: Uint8Array, bytes: number): Upload {
  const boundary = 'a-boundary-of-the-bench'
  async function* form(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="form"\r\n\r\n`,
    )
    yield* pieces(chunk, bytes)
    yield Buffer.from(`\r\n--${boundary}--\r\n`)
  }
  return {
    path: '/v1/files',
    body: form(),
    contentType: `multipart/form-data; boundary=${boundary}`,
  }
}

/** Pieces are numbered, so that the file does not repeat. */
async function* pieces(chunk: Uint8Array, bytes: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < bytes; sent += chunk.length) {
    const piece = Buffer.from(chunk.subarray(0, Math.min(chunk.length, bytes - sent)))
    if (piece.length >= 8) piece.writeBigUInt64LE(BigInt(sent))
    yield piece
  }
}

function format(measured: readonly Measured[], megabytes: number): string {
  return formatTable(
    ['', 'MB/s', 'CPU, ms per MB', 'memory, peak, MiB'],
    measured.map(({ name, seconds, cpuMs, peakBytes }) => [
      name,
      (megabytes / seconds).toFixed(0),
      (cpuMs / megabytes).toFixed(2),
      toMebibytes(peakBytes),
    ]),
  )
}
