import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { sanitizeSvg } from '#branding/logo/svg/sanitize.ts'
import { ConfigError, loadConfig } from '#config/load.ts'
import { configSchema } from '#config/schema.ts'
import { readMultipart } from '#http/multipart.ts'
import { AppError } from '#lib/errors.ts'
import { UnreadableFile } from '#retrieval/extraction/unreadable.ts'
import { openZip } from '#retrieval/extraction/zip.ts'
import { makeArchive, wordPart } from '#test/retrieval/extraction/archives.ts'
import { attempt } from '#test/support/attempt.ts'
import { temporaryFolder } from '#test/support/process.ts'
import { divide, holds, holdsAsync } from '#test/support/properties.ts'
import { hostileText } from './hostile-values.ts'

/** Parsers of files and forms: a value or an error of their own, never another exception. */

describe('files', () => {
  test('an archive is read or unreadable', () => {
    const archive = makeArchive([
      { name: 'word/document.xml', content: wordPart('hello') },
      { name: 'b', content: new Uint8Array(300) },
    ])
    const flips = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 8 })
    holds(
      fc.tuple(flips, fc.nat()),
      ([changes, cut]) => {
        const broken = new Uint8Array(archive)
        for (const [at, byte] of changes) broken[at % broken.length] = byte
        const bytes = cut % 3 === 0 ? broken.slice(0, cut % broken.length) : broken
        attempt(() => {
          const zip = openZip(bytes)
          for (const name of zip.names) attempt(() => zip.read(name), UnreadableFile)
        }, UnreadableFile)
      },
      500,
    )
  })

  test('an SVG is sanitised to one that stays the same, or refused', () => {
    const name = fc.constantFrom(
      'g',
      'path',
      'script',
      'use',
      'a',
      'style',
      'foreignObject',
      'text',
      'svg',
      'image',
      'animate',
      'set',
    )
    const attribute = fc.tuple(
      fc.constantFrom(
        'id',
        'href',
        'onload',
        'style',
        'fill',
        'd',
        'xlink:href',
        'class',
        'transform',
        'filter',
      ),
      fc.oneof(
        fc.constantFrom(
          'url(#a)',
          '#a',
          'javascript:alert(1)',
          'url(http://x/)',
          'data:text/html,x',
          'red',
          '\\75rl(x)',
        ),
        fc.string({ maxLength: 10 }),
      ),
    )
    const escapeXml = (text: string) => text.replace(/[<&"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
    const node = fc.letrec<{ node: string }>((tie) => ({
      node: fc
        .tuple(
          name,
          fc.array(attribute, { maxLength: 3 }),
          fc.oneof(
            { maxDepth: 4 },
            fc.string({ maxLength: 8 }).map(escapeXml),
            fc.array(tie('node'), { maxLength: 2 }).map((all) => all.join('')),
          ),
        )
        .map(([tag, attributes, inner]) => {
          const unique = [...new Map(attributes)].map(
            ([key, value]) => ` ${key}="${escapeXml(value)}"`,
          )
          return `<${tag}${unique.join('')}>${inner}</${tag}>`
        }),
    })).node
    holds(
      fc.array(node, { maxLength: 3 }),
      (nodes) => {
        const text = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">${nodes.join('')}</svg>`
        const clean = attempt(() => sanitizeSvg(text))
        if (clean === null) return
        expect(clean.svg).not.toMatch(
          /<script|<foreignObject|<style|\son\w+=|javascript:|https?:\/\/(?!www\.w3\.org\/2000\/svg)|data:/i,
        )
        expect(sanitizeSvg(clean.svg).svg).toBe(clean.svg)
      },
      300,
    )
  })

  test('a form has the values that were put in, or is refused', async () => {
    const limits = {
      fieldsMax: 8,
      fieldBytesMax: 1_024,
      filesMax: 2,
      gapMs: 60_000,
      totalMs: 60_000,
    }
    const value = fc
      .string({ unit: 'binary', maxLength: 30 })
      .filter((text) => text.isWellFormed() && !text.includes('--b'))
    const fields = fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,8}$/), value), { maxLength: 5 })
    await holdsAsync(
      fc.tuple(fields, fc.array(fc.nat(), { maxLength: 6 }), fc.nat()),
      async ([pairs, cuts, cut]) => {
        const text = pairs.map(
          ([name, content]) =>
            `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`,
        )
        const whole = Buffer.from(`${text.join('')}--b--\r\n`)
        const isCut = cut % 4 === 0
        const bytes = isCut ? whole.subarray(0, cut % whole.length) : whole
        const request = new Request('http://gateway/', {
          method: 'POST',
          headers: { 'content-type': 'multipart/form-data; boundary=b' },
          body: new ReadableStream({
            start(controller) {
              for (const piece of divide(bytes, cuts))
                if (piece.length > 0) controller.enqueue(piece)
              controller.close()
            },
          }),
        })
        const form = await readMultipart(request, limits, async () => null).catch((error) => {
          if (error instanceof AppError) return null
          throw error
        })
        if (isCut || pairs.length === 0) return
        expect(form?.fields).toEqual(new Map(pairs))
      },
      60,
    )
  })

  test('a configuration file is read, or every fault is a line', () => {
    const path = join(temporaryFolder(), 'sluice.toml')
    const word = fc.oneof(
      fc.constantFrom(...Object.keys(configSchema.properties), 'x', '__proto__'),
      fc.stringMatching(/^[a-z_]{1,8}$/),
    )
    const value = fc.oneof(
      fc.constantFrom(
        '1',
        '-1',
        '""',
        '"a"',
        'true',
        '[]',
        '[1]',
        '{}',
        '1e9',
        '1979-05-27',
        'nan',
        "'''x'''",
        '{a=1}',
      ),
      hostileText,
    )
    const line = fc.oneof(
      fc.tuple(word, value).map(([key, text]) => `${key} = ${text}`),
      word.map((key) => `[${key}]`),
      word.map((key) => `[[${key}]]`),
      hostileText,
    )
    holds(
      fc.array(line, { maxLength: 6 }),
      (lines) => {
        writeFileSync(path, lines.join('\n'))
        attempt(() => loadConfig({ SLUICE_CONFIG: path }), ConfigError)
      },
      150,
    )
    expect(Object.prototype).not.toHaveProperty('x')
  })
})
