import { describe, expect, test } from 'bun:test'
import type { FunctionTool, GenerationRequest } from '#inference/request.ts'
import { countableOf, estimateTokens } from '#inference/token-estimate.ts'

/** What two published vocabularies, a newer (200,000 entries) and an older one (100,000), need. */
type Sample = { text: string; newer: number; older: number }

const plainTexts: Readonly<Record<string, Sample>> = {
  English: {
    text: 'The ferry leaves the island at seven in the morning, so most visitors stay overnight. There is one small hotel near the harbour, and a bakery that opens before sunrise.',
    newer: 34,
    older: 34,
  },
  'a program': {
    text: 'async function readLines(path: string, linesMax: number): Promise<string[]> {\n  const text = await readFile(path, "utf8")\n  const lines = text.split("\\n")\n  if (lines.length > linesMax) {\n    throw new Error(path + " has more than " + linesMax + " lines")\n  }\n  return lines.map((line) => line.trim())\n}\n',
    newer: 81,
    older: 80,
  },
  'dense JSON': {
    text: '{"type":"object","properties":{"city":{"type":"string","description":"Where to look"},"days":{"type":"integer","minimum":1,"maximum":14},"units":{"type":"string","enum":["metric","imperial"]}},"required":["city","days"],"additionalProperties":false}',
    newer: 61,
    older: 59,
  },
  'a log': {
    text: '2026-03-14T09:26:53.589Z INFO [worker-3] request 7932 GET /v1/models/tiny 200 in 38.4 ms\n2026-03-14T09:26:54.643Z WARN [worker-1] request 3832 POST /v1/files 413 in 2.7 ms\n',
    newer: 80,
    older: 79,
  },
  'base64 data': {
    text: Buffer.from(
      'Nothing in here is a word, once it is written down as base64. '.repeat(6),
    ).toString('base64'),
    newer: 318,
    older: 348,
  },
}

const otherScripts: Readonly<Record<string, Sample>> = {
  German: {
    text: 'Für die Städte am Fluss bedeutete die Schifffahrt Wohlstand, für die Fischer dagegen oft den Verlust ihrer Lebensgrundlage. Man baute größere Häfen und errichtete neue Brücken.',
    newer: 42,
    older: 50,
  },
  Greek: {
    text: 'Το πρωί η θάλασσα ήταν ήρεμη και τα καΐκια γύριζαν αργά στο λιμάνι. Ένα παιδί μετρούσε τα δίχτυα και ρωτούσε γιατί το νερό αλλάζει χρώμα.',
    newer: 57,
    older: 125,
  },
  Russian: {
    text: 'Вечером старый библиотекарь закрыл окно и зажёг лампу. За окном шумел дождь, и казалось, что весь город уснул раньше обычного.',
    newer: 40,
    older: 68,
  },
  Chinese: {
    text: '春天来了,村子旁边的小河又涨满了水。老人们坐在树下喝茶聊天,谈论今年的收成和天气。',
    newer: 35,
    older: 55,
  },
  Japanese: {
    text: '朝早く起きて、窓を開けると冷たい空気が部屋に入ってきた。今日は町の図書館へ行って、本を返さなければならない。',
    newer: 46,
    older: 64,
  },
  Korean: {
    text: '아침 일찍 일어나 창문을 여니 차가운 공기가 방 안으로 들어왔다. 버스 시간을 확인하고 천천히 커피를 마시기로 했다.',
    newer: 38,
    older: 61,
  },
  Arabic: {
    text: 'في الصباح الباكر خرج الصيادون إلى البحر بحثا عن رزقهم. كانت السماء صافية والريح خفيفة.',
    newer: 31,
    older: 60,
  },
}

describe('a text is estimated', () => {
  for (const [name, { text, newer, older }] of Object.entries(plainTexts)) {
    test(`${name}: to 15 %`, () => {
      expect(tokensOf(text)).toBeGreaterThan(Math.min(newer, older) * 0.85)
      expect(tokensOf(text)).toBeLessThan(Math.max(newer, older) * 1.15)
    })
  }
  for (const [name, { text, newer, older }] of Object.entries(otherScripts)) {
    test(`${name}: between a newer and an older tokenizer, to 15 %`, () => {
      expect(tokensOf(text)).toBeGreaterThan(newer * 0.85)
      expect(tokensOf(text)).toBeLessThan(older * 1.15)
    })
  }

  test('a text of a thousand times the length has a thousand times the tokens', () => {
    const { text } = plainTexts['English'] ?? { text: '' }
    expect(tokensOf(text.repeat(1_000)) / (1_000 * tokensOf(text))).toBeCloseTo(1, 1)
  })

  test('empty text has no tokens, white space hardly any', () => {
    expect(tokensOf('')).toBe(0)
    expect(tokensOf(' '.repeat(64))).toBeLessThan(5)
  })
})

describe('every part of a request counts', () => {
  const words = 'Eight plain words that a model will read'

  test('instructions, messages, calls, results and reasoning', () => {
    const plain = estimateTokens(request({ instructions: words }))
    const message = {
      type: 'message',
      role: 'user',
      parts: [{ type: 'text', text: words }],
    } as const
    const call = { type: 'tool-call', callId: 'call_1', name: 'look', form: 'function' } as const
    const result = { type: 'tool-result', callId: 'call_1', form: 'function' } as const
    expect(estimateTokens(request({ items: [message] }))).toBe(plain)
    expect(estimateTokens(request({ items: [{ ...call, arguments: words }] }))).toBe(plain + 1)
    expect(estimateTokens(request({ items: [{ ...result, parts: message.parts }] }))).toBe(plain)
    expect(
      estimateTokens(
        request({ items: [{ type: 'reasoning', summary: ['Shorter.'], text: words }] }),
      ),
    ).toBe(plain)
    expect(
      estimateTokens(request({ items: [{ type: 'reasoning', summary: [words], text: '' }] })),
    ).toBe(plain)
    expect(
      estimateTokens(
        request({ items: [{ type: 'reasoning', summary: [], text: '', sealed: 'x'.repeat(600) }] }),
      ),
    ).toBeGreaterThan(80)
  })

  test('a tool with its name, its description and its schema or grammar', () => {
    const bare: FunctionTool = {
      type: 'function',
      name: 'look_up',
      description: null,
      parameters: null,
      strict: null,
    }
    const schema = JSON.parse(plainTexts['dense JSON']?.text ?? '')
    const none = estimateTokens(request({}))
    const named = estimateTokens(request({ tools: [bare] }))
    const described = estimateTokens(request({ tools: [{ ...bare, description: words }] }))
    const full = estimateTokens(
      request({ tools: [{ ...bare, description: words, parameters: schema }] }),
    )
    expect(named).toBeGreaterThan(none)
    expect(described - named).toBe(8)
    expect(full - described).toBeGreaterThan(40)
    const { name, description } = bare
    const grammar = { syntax: 'lark', definition: words } as const
    const free = request({ tools: [{ type: 'custom', name, description, grammar }] })
    expect(estimateTokens(free)).toBe(named + 7)
  })

  test('an image does not count by its data length, only by its detail', () => {
    const image = (url: string, detail: string | null) =>
      estimateTokens(
        request({
          items: [{ type: 'message', role: 'user', parts: [{ type: 'image', url, detail }] }],
        }),
      )
    const long = `data:image/png;base64,${'A'.repeat(100_000)}`
    expect(image(long, null)).toBe(image('https://pictures.example/cat.png', 'high'))
    expect(image(long, 'low')).toBeLessThan(image(long, 'auto') / 5)
  })

  test('a file by its size, text more than other data, a URL as a few pages', () => {
    const file = (data: string | null) =>
      estimateTokens(
        request({
          items: [
            {
              type: 'message',
              role: 'user',
              parts: [{ type: 'file', data, url: null, filename: null }],
            },
          ],
        }),
      )
    const data = 'A'.repeat(40_000)
    expect(file(`data:text/plain;base64,${data}`)).toBeGreaterThan(7_000)
    expect(file(`data:application/pdf;base64,${data}`)).toBeWithin(1_500, 3_000)
    expect(file(null)).toBeWithin(1_000, 3_000)
  })
})

/** The tokens of a text, without message overhead. */
function tokensOf(text: string): number {
  const around = estimateTokens(request({ instructions: '' }))
  return estimateTokens(request({ instructions: text })) - around
}

function request(
  parts: Partial<GenerationRequest>,
): Pick<GenerationRequest, 'instructions' | 'items' | 'tools'> {
  return { instructions: null, items: [], tools: [], ...parts }
}

test('templates, files and sealed reasoning count beside the texts', () => {
  const call = { type: 'tool-call', callId: 'call_1', name: 'look', form: 'function' } as const
  const sealed = { type: 'reasoning', summary: ['Short.'], sealed: 'x'.repeat(600) } as const
  const file = { type: 'file', data: null, filename: null } as const
  const ofFile = (url: string) =>
    countableOf(request({ items: [{ type: 'message', role: 'user', parts: [{ ...file, url }] }] }))
  expect(countableOf(request({ instructions: null, items: [] }))).toEqual({
    texts: [],
    templateTokens: 3,
    opaqueTokens: 0,
  })
  expect(
    countableOf(
      request({
        instructions: 'Be kind.',
        items: [
          { ...call, arguments: '{}' },
          { ...sealed, text: '' },
          { ...sealed, text: 'Long.' },
          { type: 'native', value: { a: 1 } },
        ],
      }),
    ),
  ).toEqual({
    texts: ['Be kind.', 'look', '{}', 'Long.', '{"a":1}'],
    templateTokens: 3 + 5 * 4,
    opaqueTokens: 100,
  })
  expect(ofFile(`data:text/plain;base64,${'A'.repeat(530 - 23)}`).opaqueTokens).toBe(100)
  expect(ofFile(`data:application/pdf;base64,${'A'.repeat(2_000 - 28)}`).opaqueTokens).toBe(100)
})
