/**
 * A program that opens many streams at once and reads all of them, in its own process so that the
 * process of the gateway does not wait for itself. Prints one line of JSON, a `CrowdReport`, when
 * each stream has sent some events or one has ended.
 *
 *   bun stream-crowd.ts <port> <token> <model> <streams>
 */
import type { Socket } from 'bun'

export type CrowdReport = {
  /** The number of streams with enough events. */
  served: number
  /** The number of responses by status line. */
  statuses: Record<string, number>
  /** The number of streams that ended, which none should. */
  ended: number
}

type Stream = { received: number; deltas: number; tail: string }

const deltasWanted = 3
const marker = 'event: response.output_text.delta'
/** Concurrent connection attempts, limited by the listen queue. */
const connectingMax = 100

const [port = 0, token = '', model = '', count = 0] = readArguments(Bun.argv.slice(2))
const report: CrowdReport = { served: 0, statuses: {}, ended: 0 }
const over = Promise.withResolvers<void>()
const body = JSON.stringify({ model, input: 'count', stream: true, store: false })
const request =
  `POST /v1/responses HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${token}\r\n` +
  `Content-Length: ${body.length}\r\n\r\n${body}`

for (let opened = 0; opened < count; opened += connectingMax) {
  const batch = Math.min(connectingMax, count - opened)
  await Promise.all(Array.from({ length: batch }, openStream))
}
await over.promise
process.stdout.write(`${JSON.stringify(report)}\n`)
process.exit(0)

function openStream(): Promise<Socket<Stream>> {
  return Bun.connect<Stream>({
    hostname: '127.0.0.1',
    port,
    data: { received: 0, deltas: 0, tail: '' },
    socket: { open: (socket) => void socket.write(request), data: take, close: lose, error: lose },
  })
}

function take({ data: stream }: Socket<Stream>, bytes: Buffer): void {
  const text = stream.tail + bytes.toString()
  if (stream.received === 0) {
    const status = text.slice(0, text.indexOf('\r\n'))
    report.statuses[status] = (report.statuses[status] ?? 0) + 1
  }
  stream.received += bytes.length
  if (stream.deltas >= deltasWanted) return
  const pieces = text.split(marker)
  stream.deltas += pieces.length - 1
  // A marker may be split at the end of the received data.
  stream.tail = (pieces.at(-1) ?? '').slice(1 - marker.length)
  if (stream.deltas < deltasWanted) return
  report.served++
  if (report.served === count) over.resolve()
}

function lose(): void {
  report.ended++
  over.resolve()
}

function readArguments([port, token, model, count]: string[]): [number, string, string, number] {
  return [Number(port), token ?? '', model ?? '', Number(count)]
}
