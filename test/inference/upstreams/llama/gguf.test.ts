import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isGenerative, readGgufHead } from '#inference/upstreams/llama/gguf.ts'
import { type TinyGguf, tinyGguf } from '#test/support/tiny-gguf.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-gguf-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function headOf(bytes: Uint8Array) {
  const path = join(folder, `${crypto.randomUUID()}.gguf`)
  writeFileSync(path, bytes)
  return readGgufHead(path)
}

const model = (metadata: TinyGguf['metadata'] = {}) => tinyGguf({ contextTokens: 4_096, metadata })
const text = (value: string) => ({ type: 'string', value }) as const

describe('the head of a GGUF file', () => {
  test('contains the architecture and the context length', async () => {
    expect(await headOf(model())).toEqual({
      architecture: 'llama',
      kind: 'model',
      contextTokens: 4_096,
    })
  })

  test('is found after values that exceed one read', async () => {
    const words = Array.from({ length: 60_000 }, (_, at) => `word-${at}`)
    const bytes = tinyGguf({
      contextTokens: 512,
      metadata: { 'general.tags': { type: 'string[]', value: words } },
    })
    // The text after the others precedes them here.
    const head = await headOf(moveLastEntryFirst(bytes, 'general.tags'))
    expect(head?.contextTokens).toBe(512)
  })

  test.each([
    ['nothing', new Uint8Array()],
    ['four letters', Buffer.from('GGUF')],
    ['words', Buffer.from('GGUF but not really, these are words')],
    ['a picture', Buffer.from('89504e470d0a1a0a', 'hex')],
    [
      'another version',
      Buffer.concat([Buffer.from('GGUF'), Buffer.of(1, 0, 0, 0), Buffer.alloc(64)]),
    ],
    ['no entry', Buffer.concat([Buffer.from('GGUF'), Buffer.of(3, 0, 0, 0), Buffer.alloc(16)])],
    [
      'a length without end',
      Buffer.concat([
        Buffer.from('GGUF'),
        Buffer.of(3, 0, 0, 0),
        Buffer.alloc(16, 255),
        Buffer.alloc(8, 255),
      ]),
    ],
  ])('is none in a file of %s', async (_name, bytes) => {
    expect(await headOf(bytes)).toBeNull()
  })

  test('is read from a truncated file', async () => {
    const bytes = model()
    expect(await headOf(bytes.subarray(0, 200))).toMatchObject({ architecture: 'llama' })
    for (const length of [20, 30, 50, 60])
      expect(await headOf(bytes.subarray(0, length))).toBeNull()
  })

  test('distinguishes generative models from others', async () => {
    const adapter = model({ 'general.type': text('adapter') })
    const heads = await Promise.all([
      headOf(model()),
      headOf(model({ 'general.architecture': text('nomic-bert') })),
      headOf(model({ 'general.architecture': text('clip') })),
      headOf(moveLastEntryFirst(adapter, 'general.type')),
    ])
    const generative = heads.map((head) => head !== null && isGenerative(head))
    expect(generative).toEqual([true, false, false, false])
  })

  test('throws for a file that is not there', async () => {
    expect(await readGgufHead(join(folder, 'none')).catch(({ code }) => code)).toBe('ENOENT')
  })
})

const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer)
const u64 = (value: number) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer)
const name = (given: string) => Buffer.concat([u64(given.length), Buffer.from(given)])
const entry = (of: string, type: number, ...value: Buffer[]) =>
  Buffer.concat([name(of), u32(type), ...value])
const file = (version: number, ...entries: Buffer[]) =>
  Buffer.concat([Buffer.from('GGUF'), u32(version), u64(0), u64(entries.length), ...entries])

describe('the values of a GGUF file', () => {
  const architecture = entry('general.architecture', 8, name('llama'))
  const context = entry('llama.context_length', 4, u32(4_096))

  test.each([
    ['of 1 byte', 0, Buffer.alloc(1)],
    ['of a signed byte', 1, Buffer.alloc(1)],
    ['of 2 bytes', 2, Buffer.alloc(2)],
    ['of 2 signed bytes', 3, Buffer.alloc(2)],
    ['of 4 bytes', 4, Buffer.alloc(4)],
    ['of 4 signed bytes', 5, Buffer.alloc(4)],
    ['of a float', 6, Buffer.alloc(4)],
    ['of a boolean', 7, Buffer.alloc(1)],
    ['of 8 bytes', 10, Buffer.alloc(8)],
    ['of 8 signed bytes', 11, Buffer.alloc(8)],
    ['of a double', 12, Buffer.alloc(8)],
  ])('%s are skipped, alone and in lists', async (_, type, value) => {
    const list = Buffer.concat([u32(type), u64(3), value, value, value])
    const others = [entry('a', type, value), entry('b', 9, list)]
    expect(await headOf(file(3, architecture, ...others, context))).toEqual({
      architecture: 'llama',
      kind: 'model',
      contextTokens: 4_096,
    })
  })

  test('of lists of texts are skipped, and after nested lists nothing is read', async () => {
    const texts = Buffer.concat([u32(8), u64(2), name('one'), name('')])
    const found = await headOf(file(2, entry('a', 9, texts), architecture, context))
    expect(found?.contextTokens).toBe(4_096)
    const nested = entry('a', 9, u32(9), u64(1), u32(0), u64(0))
    expect(await headOf(file(3, architecture, nested, context))).toMatchObject({
      architecture: 'llama',
      contextTokens: null,
    })
    const unknown = entry('a', 13)
    expect((await headOf(file(3, architecture, unknown, context)))?.contextTokens).toBeNull()
  })

  test('may be of 8 bytes', async () => {
    const wide = entry('llama.context_length', 10, u64(4_096))
    expect((await headOf(file(3, architecture, wide)))?.contextTokens).toBe(4_096)
  })

  test('end with the number of entries, and are read in two versions', async () => {
    const [first, ...rest] = [architecture, context]
    const one = Buffer.concat([file(3, first), ...rest])
    expect((await headOf(one))?.contextTokens).toBeNull()
    for (const version of [1, 4]) {
      expect(await headOf(file(version, architecture, context))).toBeNull()
    }
    const other = Buffer.concat([Buffer.from('GGUX'), file(3, architecture, context).subarray(4)])
    expect(await headOf(other)).toBeNull()
  })
})

/** The entries of a head in another order, which the format permits. */
function moveLastEntryFirst(bytes: Uint8Array, name: string): Uint8Array {
  const buffer = Buffer.from(bytes)
  const headBytes = 4 + 4 + 8 + 8
  const start = buffer.indexOf(name) - 8
  const end = buffer.indexOf('token_embd.weight') - 8
  return Buffer.concat([
    buffer.subarray(0, headBytes),
    buffer.subarray(start, end),
    buffer.subarray(headBytes, start),
    buffer.subarray(end),
  ])
}
