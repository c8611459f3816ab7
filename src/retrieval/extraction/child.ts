/** The program that reads one file, with the limits of `extraction.ts`. See `child-protocol.ts`. */
import { closeSync } from 'node:fs'
import { type ChildReport, type ChildRequest, readyLine } from './child-protocol.ts'
import { readDocument } from './read-document.ts'
import { UnreadableFile } from './unreadable.ts'

// Signals to the process group are meant for the server, which ends its children itself.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})

await write(readyLine)
const { report, text } = await read(await Bun.stdin.bytes())
await write(`${JSON.stringify(report)}\n`)
await write(text)
// The server ends this process, since parsers may leave timers or handles behind.
closeSync(process.stdout.fd)

async function read(input: Uint8Array): Promise<{ report: ChildReport; text: Uint8Array }> {
  const end = input.indexOf(0x0a)
  const request: ChildRequest = JSON.parse(new TextDecoder().decode(input.subarray(0, end)))
  try {
    const document = await readDocument(input.subarray(end + 1), request)
    const bytes = new TextEncoder().encode(document.text)
    return { report: { type: 'read', pages: document.pages, bytes: bytes.length }, text: bytes }
  } catch (error) {
    return { report: { type: 'unreadable', code: codeOf(error) }, text: new Uint8Array() }
  }
}

/** Parsers throw errors of any kind for damaged files. */
function codeOf(error: unknown) {
  if (error instanceof UnreadableFile) return error.code
  return error instanceof RangeError ? 'extraction_limit' : 'invalid_file'
}

async function write(data: string | Uint8Array): Promise<void> {
  await Bun.write(Bun.stdout, data)
}
