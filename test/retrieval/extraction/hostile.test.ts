import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { makeDocx, makePdf, makePptx } from '#test/support/documents.ts'
import { eventually } from '#test/support/eventually.ts'
import { type ArchiveEntry, makeArchive, wordPart } from './archives.ts'
import { extract, extractionWith, refusalOf } from './extraction-harness.ts'

const megabyte = 1024 * 1024
const zeros = (bytes: number) => new Uint8Array(bytes)
const document: ArchiveEntry = { name: 'word/document.xml', content: wordPart('hello') }
const withDocument = (...entries: ArchiveEntry[]) => makeArchive([document, ...entries])

describe('an archive', () => {
  test('with correct sizes is read', async () => {
    expect((await extract(withDocument())).text).toBe('hello')
    expect((await extract(makeArchive([document], { comment: 'PK and so on' }))).text).toBe('hello')
  })

  test('with too many entries, too much content or an extreme ratio is refused', async () => {
    const many = Array.from({ length: 2_000 }, (_, at) => ({ name: `${at}`, content: zeros(0) }))
    expect(await refusalOf(makeArchive([document, ...many]))).toBe('too_large')
    expect((await extract(makeArchive([document, ...many.slice(1)]))).text).toBe('hello')
    const long = { name: 'word/long.xml', content: zeros(1), saysBytes: 201 * megabyte }
    expect(await refusalOf(withDocument(long))).toBe('too_large')
    const noise = crypto.getRandomValues(new Uint8Array(65_536))
    const content = Buffer.concat(Array.from({ length: 16 }, (_, at) => noise.map((x) => x ^ at)))
    const parts = ['a', 'b', 'c'].map((name) => ({ name, content, saysBytes: 70 * megabyte }))
    expect(await refusalOf(withDocument(...parts))).toBe('too_large')
    expect((await extract(withDocument(...parts.slice(1)))).text).toBe('hello')
    expect(await refusalOf(withDocument({ name: 'b', content: zeros(2 * megabyte) }))).toBe(
      'too_large',
    )
    expect((await extract(withDocument({ name: 'b', content: zeros(megabyte) }))).text).toBe(
      'hello',
    )
  })

  test('with a wrong declared size is stopped at that size', async () => {
    const lie = { name: 'word/document.xml', content: wordPart('a'.repeat(megabyte)) }
    expect(await refusalOf(makeArchive([{ ...lie, saysBytes: 1_000 }]))).toBe('too_large')
    expect(await refusalOf(makeArchive([{ ...document, saysBytes: 1_000 }]))).toBe('invalid_file')
  })

  test('with overlapping entries or duplicate names is refused', async () => {
    const again = { ...document, name: 'word/styles.xml', overlaps: true }
    expect(await refusalOf(withDocument(again))).toBe('too_large')
    expect(await refusalOf(withDocument(document))).toBe('invalid_file')
  })

  test('with entries missing in its directory is refused', async () => {
    expect(await refusalOf(makeArchive([document, document], { saysEntries: 1 }))).toBe(
      'invalid_file',
    )
    expect(await refusalOf(makeArchive([document], { saysEntries: 2 }))).toBe('invalid_file')
  })

  test('that is encrypted, truncated or of another format is refused', async () => {
    expect(await refusalOf(makeArchive([{ ...document, flags: 1 }]))).toBe('encrypted')
    expect(await refusalOf(withDocument().subarray(0, -30))).toBe('invalid_file')
    expect(await refusalOf(makeArchive([{ name: 'a.txt', content: wordPart('a') }]))).toBe(
      'unsupported_file',
    )
  })

  test('inside another archive is not opened', async () => {
    const inner = makeArchive([{ name: 'word/document.xml', content: wordPart('inside') }])
    expect(await refusalOf(makeArchive([{ name: 'inner.docx', content: inner }]))).toBe(
      'unsupported_file',
    )
  })
})

describe('a hostile document', () => {
  test('cannot expand entities or read local files', async () => {
    const xml = (doctype: string) =>
      Buffer.from(
        wordPart('&x;').toString().replace('<w:document', `<!DOCTYPE d ${doctype}><w:document`),
      )
    const content = xml('[<!ENTITY x SYSTEM "file:///etc/passwd">]')
    const docx = makeArchive([{ name: 'word/document.xml', content }])
    expect(await refusalOf(docx)).not.toContain('root:')
    const pptx = makeArchive([{ name: 'ppt/presentation.xml', content: xml('[<!ENTITY x "y">]') }])
    expect(await refusalOf(pptx)).toBe('invalid_file')
  })

  test('is killed at the time limit and leaves nothing behind', async () => {
    const before = children()
    const extraction = extractionWith({ extractMs: 1_000 })
    const deep = '<div>'.repeat(200_000)
    expect(await refusalOf(deep, { name: 'a.html', extraction })).toBe('extraction_limit')
    await eventually('no process is left', () => children().length <= before.length)
  })

  test('is killed at the memory limit', async () => {
    const extraction = extractionWith({ extractMemoryBytesMax: 310_000_000 })
    const long = 'a '.repeat(9 * megabyte)
    expect(await refusalOf(long, { extraction })).toBe('extraction_limit')
    expect((await extract('small', { extraction })).text).toBe('small')
  })

  test('is refused when the file exceeds the memory limit', async () => {
    const extraction = extractionWith({ extractMemoryBytesMax: 400_000_000 })
    const file = { name: 'a.txt', mimeType: '', bytes: 100_000_001 }
    const opened = () => Promise.reject(new Error('opened'))
    const reading = extraction.extract(file, opened, new AbortController().signal)
    await expect(reading).rejects.toMatchObject({ code: 'too_large' })
  })

  test('is refused when the text exceeds the limit', async () => {
    const extraction = extractionWith({ textCharsMax: 1_000 })
    expect((await extract('a'.repeat(1_000), { extraction })).text).toHaveLength(1_000)
    for (const content of [
      'a'.repeat(1_001),
      makeDocx(['a'.repeat(1_001)]),
      makePptx([{ lines: ['a'.repeat(600), 'b'.repeat(600)] }]),
    ]) {
      expect(await refusalOf(content, { extraction })).toBe('too_large')
    }
  })
})

describe('reading', () => {
  test('ends when the signal aborts', async () => {
    const before = children()
    const stop = new AbortController()
    const reading = extract('<div>'.repeat(200_000), { name: 'a.html', signal: stop.signal })
    await eventually('it runs', () => children().length > before.length)
    stop.abort(new Error('no longer wanted'))
    await expect(reading).rejects.toThrow('no longer wanted')
    await eventually('no process is left', () => children().length <= before.length)
  })

  test('fails with the error of the source', async () => {
    const extraction = extractionWith()
    const file = { name: 'a.txt', mimeType: '', bytes: 10 }
    const broken = async () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.error(new Error('the storage is away')),
      })
    const never = new AbortController().signal
    await expect(extraction.extract(file, broken, never)).rejects.toThrow('the storage is away')
  })

  test('has a concurrency limit', async () => {
    const extraction = extractionWith({ extractionsMax: 2 })
    const others = readersRunning()
    let most = 0
    const looking = setInterval(() => {
      most = Math.max(most, readersRunning() - others)
    }, 1)
    const texts = Array.from({ length: 6 }, (_, at) => `text ${at}`)
    const read = await Promise.all(texts.map((text) => extract(text, { extraction })))
    clearInterval(looking)
    expect(read.map(({ text }) => text)).toEqual(texts)
    expect(most).toBeLessThanOrEqual(2)
    expect(most).toBeGreaterThan(0)
  })

  test('of a large file keeps little of it in the server process', async () => {
    const piece = Buffer.alloc(megabyte, 'some words ')
    const pieces = 60
    let given = 0
    const open = async () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          if (given++ < pieces) controller.enqueue(piece)
          else controller.close()
        },
      })
    const extraction = extractionWith({ textCharsMax: 1_000 })
    const file = { name: 'a.txt', mimeType: '', bytes: pieces * megabyte }
    const before = process.memoryUsage().rss
    const reading = extraction.extract(file, open, new AbortController().signal)
    await expect(reading).rejects.toMatchObject({ code: 'too_large' })
    expect(process.memoryUsage().rss - before).toBeLessThan(40 * megabyte)
  })

  test('of a large file needs little more memory than its size', async () => {
    const padding = Buffer.alloc(70 * megabyte, ' ')
    const pdf = Buffer.concat([Buffer.from('%PDF-1.4\n%'), padding, makePdf([['far behind']])])
    expect((await extract(pdf, { name: 'a.pdf' })).text).toBe('far behind')
  })

  test('names the extractor for the cache', () => {
    const { extractorOf } = extractionWith()
    const of = (name: string, mimeType = '') => extractorOf({ name, mimeType, bytes: 1 })
    expect(of('a.html')).not.toBe(of('a.txt'))
    expect(of('a.md')).toBe(of('b.csv'))
    expect(of('a', 'text/html')).toBe(of('a.htm'))
  })
})

function children(): string[] {
  const path = `/proc/${process.pid}/task`
  return readdirSync(path).flatMap((thread) => {
    try {
      return readFileSync(`${path}/${thread}/children`, 'utf8').split(' ').filter(Boolean)
    } catch {
      return []
    }
  })
}

function readersRunning(): number {
  return children().filter((pid) => {
    try {
      return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    } catch {
      return false
    }
  }).length
}
