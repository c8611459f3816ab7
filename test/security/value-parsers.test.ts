import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseRange } from '#files/content/download-endpoints.ts'
import { imageSizeOf } from '#inference/image-size.ts'
import { installBody, readInstall } from '#installer/schema.ts'
import { readDataUrl } from '#lib/data-url.ts'
import { readIfMatch } from '#lib/entity-tag.ts'
import { parseInstant } from '#lib/instant.ts'
import { matchNames } from '#lib/name-patterns.ts'
import { readTraceContext } from '#lib/trace.ts'
import { readStoreFilters } from '#retrieval/vector-stores/filters.ts'
import { readControl, readHandshake } from '#speech/session/client-frames.ts'
import { SessionError } from '#speech/session/session-error.ts'
import { attempt } from '#test/support/attempt.ts'
import { holds } from '#test/support/properties.ts'
import { arbitraryOf, hostileText, hostileValue, spoilt } from './hostile-values.ts'

/** Parsers of whole values: a value or an error of their own, never another exception. */

describe('headers', () => {
  test('a range is inside of the file, unsatisfiable, or ignored', () => {
    const bound = fc.oneof(
      fc.nat({ max: 30 }).map(String),
      fc.constantFrom('', '-1', '999999999999999999', '1.5', 'a'),
    )
    const header = fc.oneof(
      fc.tuple(bound, bound).map(([from, to]) => `bytes=${from}-${to}`),
      hostileText,
    )
    holds(
      fc.tuple(header, fc.nat({ max: 20 })),
      ([text, bytes]) => {
        const range = parseRange(text, bytes)
        if (range === null || range === 'unsatisfiable') return
        expect(range.start).toBeWithin(0, range.end)
        expect(range.end).toBeLessThanOrEqual(bytes)
      },
      500,
    )
  })

  test('a valid range returns exactly its bytes', () => {
    holds(
      fc.tuple(fc.nat({ max: 50 }), fc.nat({ max: 50 }), fc.integer({ min: 1, max: 60 })),
      ([one, other, bytes]) => {
        const [first, last] = [Math.min(one, other), Math.max(one, other)]
        const expected =
          first >= bytes ? 'unsatisfiable' : { start: first, end: Math.min(last + 1, bytes) }
        expect(parseRange(`bytes=${first}-${last}`, bytes)).toEqual(expected)
      },
    )
  })

  test('a trace context is passed on as it came, or dropped', () => {
    const hex = (length: number) =>
      fc.string({
        unit: fc.constantFrom(...'0123456789abcdefG'),
        minLength: length,
        maxLength: length,
      })
    const parent = fc.oneof(
      fc.tuple(hex(2), hex(32), hex(16), hex(2)).map((parts) => parts.join('-')),
      fc.string({ maxLength: 60 }),
    )
    holds(
      fc.tuple(parent, fc.string({ maxLength: 600 })),
      ([traceparent, tracestate]) => {
        const headers = attempt(() => new Headers({ traceparent, tracestate }), TypeError)
        if (headers === null) return
        const trace = readTraceContext(headers)
        if (trace === null) return
        expect(trace.traceparent).toMatch(/^[0-9a-f-]{55}$/)
        expect(trace.tracestate?.length ?? 0).toBeLessThanOrEqual(512)
      },
      300,
    )
  })

  test('an entity tag matches itself, and no other text does', () => {
    holds(
      fc.tuple(fc.stringMatching(/^[a-z0-9]{1,8}$/), hostileText),
      ([tag, other]) => {
        expect(readIfMatch(`"${tag}"`)(tag)).toBeTrue()
        if (other.trim() !== '*' && !other.includes(`"${tag}"`))
          expect(readIfMatch(other)(tag)).toBeFalse()
      },
      300,
    )
  })
})

describe('texts', () => {
  test('an instant survives its rendering', () => {
    holds(
      fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true }),
      (date) => {
        expect(parseInstant(date.toISOString())?.getTime()).toBe(date.getTime())
      },
    )
    holds(hostileText, (text) => void parseInstant(text))
  })

  test('a data URL has the bytes that were put in', () => {
    holds(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const base64 = Buffer.from(bytes).toString('base64')
      expect(readDataUrl(`data:image/png;base64,${base64}`)).toEqual({
        mimeType: 'image/png',
        base64,
      })
    })
    holds(
      hostileText,
      (text) => {
        readDataUrl(`data:${text}`)
        imageSizeOf(`data:image/png;base64,${text}`)
        imageSizeOf(text)
      },
      300,
    )
  })

  test('a name matches its own pattern', () => {
    const name = fc.stringMatching(/^[a-z0-9/.-]{1,12}$/)
    holds(fc.tuple(name, fc.nat()), ([text, at]) => {
      const cut = at % (text.length + 1)
      expect(matchNames([`${text.slice(0, cut)}*`])(text)).toBeTrue()
      expect(matchNames([text])(`${text}x`)).toBeFalse()
    })
    holds(fc.tuple(hostileText, hostileText), ([pattern, text]) => void matchNames([pattern])(text))
  })
})

describe('JSON values', () => {
  const depth = fc.letrec<{ filter: unknown }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 4 },
      fc.record({
        type: fc.constantFrom('eq', 'ne', 'gt', 'in', 'nin'),
        key: hostileText,
        value: hostileValue,
      }),
      fc.record({
        type: fc.constantFrom('and', 'or'),
        filters: fc.array(tie('filter'), { maxLength: 3 }),
      }),
    ),
  })).filter

  test('filters are read or refused', () => {
    holds(
      fc.oneof(depth, spoilt(depth), hostileValue),
      (filter) => {
        attempt(() => readStoreFilters(filter))
      },
      400,
    )
  })

  test('the source of a model is read or refused, and its name is no path', () => {
    const reference = fc.oneof(
      hostileText,
      fc.tuple(hostileText, hostileText).map((parts) => parts.join('/')),
      fc.constantFrom(
        'org/name',
        'hf.co/org/name:Q4_K_M',
        'oci://r/x@sha256:00',
        'https://h/../a.gguf',
        '/etc/passwd',
        'http://[::1]/x',
        'a/b/c',
        '../../x',
      ),
    )
    const body = fc
      .tuple(arbitraryOf(installBody), reference)
      .map(([value, model]) => ({ ...Object(value), model }))
    // Nothing else refuses these.
    const named = reference.map((name) => ({ model: 'org/name', name }))
    const located = reference.map((model) => ({ model, source: 'local' }))
    holds(
      fc.oneof(body, spoilt(body), named, located),
      (value) => {
        const read = attempt(() => readInstall(value))
        if (read === null) return
        expect(read.model).not.toMatch(/\0|\\|(^|\/)\.\.?(\/|$)|^\/|^[a-z]:/i)
      },
      400,
    )
  })

  test('frames of a speech client are read or refused', () => {
    const query = {
      language: 'en',
      encoding: 'pcm_int16',
      sampleRateHz: 16_000,
      ignored: [],
    } as unknown as Parameters<typeof readHandshake>[1]
    const start = fc.constant({
      type: 'session_start',
      audio: { container: 'auto', channels: 1 },
      options: { words: true, vocabulary: ['a'], endpointing_ms: 500 },
      resume: { session_id: 'a', token: 'b', last_seq: 0 },
      metadata: { a: 'b' },
    })
    const frame = fc.oneof(spoilt(start), hostileValue).map((value) => JSON.stringify(value) ?? '')
    holds(
      fc.oneof(frame, hostileText),
      (text) => {
        attempt(() => readHandshake(text, query), SessionError)
        attempt(() => readControl(text), SessionError)
      },
      400,
    )
  })
})
