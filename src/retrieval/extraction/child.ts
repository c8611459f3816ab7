/** The program that reads one file, with the limits of `extraction.ts`. See `child-protocol.ts`. */
import { closeSync } from 'node:fs'
import { type ChildReport, type ChildRequest, readyLine } from './child-protocol.ts'
import { createGaps } from './gaps.ts'
import { readDocument } from './read-document.ts'
import { UnreadableFile } from './unreadable.ts'

// Signals to the process group are meant for the server, which ends its children itself.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})

await write(readyLine)
const { report, content } = await read(Bun.stdin.stream())
await write(`${JSON.stringify(report)}\n`)
for (const part of content) await write(part)
// The server ends this process, since parsers may leave timers or handles behind.
closeSync(process.stdout.fd)

async function read(
  input: AsyncIterable<Uint8Array>,
): Promise<{ report: ChildReport; content: readonly Uint8Array[] }> {
  const gaps = createGaps()
  try {
    const { request, file } = await readInput(input)
    const { text, pages, images } = await readDocument(file, { ...request, gaps })
    const bytes = new TextEncoder().encode(text)
    const report: ChildReport = {
      type: 'read',
      pages,
      bytes: bytes.length,
      images: images.map(({ page, content }) => ({ page, bytes: content.length })),
      gaps: gaps.list(),
    }
    return { report, content: [bytes, ...images.map((image) => image.content)] }
  } catch (error) {
    const report = { type: 'unreadable', code: codeOf(error), gaps: gaps.list() } as const
    return { report, content: [] }
  }
}

/** The file is copied into one buffer of its size, since a growing one would take three times as much. */
async function readInput(input: AsyncIterable<Uint8Array>) {
  let head = Buffer.alloc(0)
  let request: ChildRequest | null = null
  let file = head
  let length = 0
  for await (let chunk of input) {
    if (request === null) {
      head = Buffer.concat([head, chunk])
      const end = head.indexOf(0x0a)
      if (end === -1) continue
      const parsed: ChildRequest = JSON.parse(head.toString('utf8', 0, end))
      request = parsed
      file = Buffer.alloc(parsed.bytes)
      chunk = head.subarray(end + 1)
    }
    file.set(chunk, length)
    length += chunk.length
  }
  if (request === null) throw new UnreadableFile('invalid_file')
  return { request, file: file.subarray(0, length) }
}

/** Parsers throw errors of any kind for damaged files. */
function codeOf(error: unknown) {
  if (error instanceof UnreadableFile) return error.code
  return error instanceof RangeError ? 'extraction_limit' : 'invalid_file'
}

async function write(data: string | Uint8Array): Promise<void> {
  await Bun.write(Bun.stdout, data)
}
