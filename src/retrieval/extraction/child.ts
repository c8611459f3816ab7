/**
 * A program that reads one file, for `extraction.ts`, which gives it few rights and little time. Its
 * input is a line of JSON and the file; its output is a line that says that it runs, a line of JSON,
 * and the text.
 */
import { type ChildReport, type ChildRequest, readyLine } from './child-messages.ts'
import { readDocument } from './read-document.ts'
import { UnreadableFile } from './unreadable.ts'

// Who stops the whole group of processes means the one that started us, which will decide.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})

await write(readyLine)
const input = await Bun.stdin.bytes()
const { report, text } = await read(input)
await write(`${JSON.stringify(report)}\n`)
await write(text)

async function read(given: Uint8Array): Promise<{ report: ChildReport; text: Uint8Array }> {
  const end = given.indexOf(0x0a)
  const request: ChildRequest = JSON.parse(new TextDecoder().decode(given.subarray(0, end)))
  try {
    const { text, pages } = await readDocument(given.subarray(end + 1), request)
    const bytes = new TextEncoder().encode(text)
    return { report: { type: 'read', pages, bytes: bytes.length }, text: bytes }
  } catch (error) {
    return { report: { type: 'unreadable', code: codeOf(error) }, text: new Uint8Array() }
  }
}

/** Readers throw what they like at a file that is damaged. */
function codeOf(error: unknown) {
  if (error instanceof UnreadableFile) return error.code
  return error instanceof RangeError ? 'extraction_limit' : 'invalid_file'
}

async function write(data: string | Uint8Array): Promise<void> {
  await Bun.write(Bun.stdout, data)
}
