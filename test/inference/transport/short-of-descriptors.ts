/**
 * A program that asks an upstream while it has no descriptor left; run it with a low `ulimit -n`.
 * Prints one line of JSON, a `ShortageReport`.
 *
 *   bun short-of-descriptors.ts <kind of transport> <url> <url of another origin>
 */
import { closeSync, openSync } from 'node:fs'
import { AppError } from '#lib/errors.ts'
import { startFetching } from '#outbound/start-fetching.ts'
import { failureOf, openTransport, request, textOf } from './transport-client.ts'

export type ShortageReport = {
  /** The outcome of a request without free descriptors. */
  readonly refused: unknown
  readonly warnings: number
  /** … when a descriptor came back while it waited. */
  readonly waited: string
  /** The outcome if the only free descriptor was an idle connection to another origin. */
  readonly relieved: string
}

const [, , name, url = '', otherUrl = ''] = process.argv
const kind = name === 'fetch' ? 'fetch' : 'socket'
const taken: number[] = []

function takeAll(): void {
  try {
    while (true) taken.push(openSync('/dev/null', 'r'))
  } catch {
    // That was the last.
  }
}

function giveBack(howMany: number): void {
  for (const descriptor of taken.splice(0, howMany)) closeSync(descriptor)
}

let warnings = 0
const log = { debug() {}, warn: () => warnings++ }
const ask = async (transport: ReturnType<typeof openTransport>, where: string) =>
  textOf(await transport.send(request(where)))

await startFetching(fetch)
takeAll()
const transport = openTransport(kind, { log })
const failures = [await failureOf(ask(transport, url)), await failureOf(ask(transport, url))]
const [refused] = failures.map((error) =>
  error instanceof AppError
    ? { kind: error.kind, status: error.status, retryAfterS: error.retryAfterS }
    : String(error),
)
setTimeout(giveBack, 100, 1)
const waited = await ask(transport, url)
transport.close()

giveBack(taken.length)
const other = openTransport(kind, { log })
await ask(other, otherUrl)
takeAll()
const relieved = await ask(other, url)
const report: ShortageReport = { refused, warnings, waited, relieved }
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0))
