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
