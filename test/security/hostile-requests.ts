import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'

/** A request that is small to make and expensive for a careless server. */
export type HostileRequest = {
  readonly name: string
  /** Method and path. */
  readonly operation: string
  readonly headers?: Readonly<Record<string, string>>
  /** Made by the client for each request. */
  readonly body: () => string | Uint8Array<ArrayBuffer>
  readonly isAdmin?: true
}

const mebibyte = 1_048_576

const json = (name: string, operation: string, value: unknown): HostileRequest => ({
  name,
  operation,
  body: () => JSON.stringify(value),
})
const text = (name: string, operation: string, body: string): HostileRequest => ({
  name,
  operation,
  body: () => body,
})

/** As many times as fit into a mebibyte. */
const fill = (piece: string) => piece.repeat(Math.floor(mebibyte / piece.length))
const items = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))

const respond = 'POST /v1/responses'
const message = 'POST /compat/v1/messages'
const turn = { model: 'demo-fast', store: false }
const asked = { model: 'demo-fast', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }

/** Each level refers twice to the next one. */
function doublingSchema(levels: number): object {
  const definitions = items(levels, (level) => [
    `d${level}`,
    {
      type: 'object',
      properties: {
        a: { $ref: `#/$defs/d${(level + 1) % levels}` },
        b: { $ref: `#/$defs/d${(level + 1) % levels}` },
      },
    },
  ])
  return { $ref: '#/$defs/d0', $defs: Object.fromEntries(definitions) }
}

const schemaFormat = (schema: object) => ({
  format: { type: 'json_schema', name: 'x', schema, strict: true },
})

function bombs(): HostileRequest[] {
  const body = Buffer.alloc(32 * mebibyte, ' ')
  const packers: readonly [string, (bytes: Buffer) => Buffer<ArrayBuffer>][] = [
    ['gzip', gzipSync as (bytes: Buffer) => Buffer<ArrayBuffer>],
    ['deflate', deflateSync as (bytes: Buffer) => Buffer<ArrayBuffer>],
    ['zstd', zstdCompressSync as (bytes: Buffer) => Buffer<ArrayBuffer>],
  ]
  return packers.map(([encoding, pack]) => ({
    name: `a bomb of ${encoding}`,
    operation: respond,
    headers: { 'content-encoding': encoding },
    body: () => new Uint8Array(pack(body)),
  }))
}

const evil = ['(a+)+$', '^(([a-z])+.)+[A-Z]([a-z])+$', '(.*a){25}'] as const

/** Bodies of about a mebibyte, except for bombs. */
export const hostileRequests: readonly HostileRequest[] = [
  text('brackets without end', respond, fill('[')),
  text('objects without end', respond, fill('{"a":')),
  text(
    'many nested values as deep as allowed',
    respond,
    `{"model":"demo-fast","input":"Hi","store":false,"x":[${fill('[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]],')}0]}`,
  ),
  json('many small input items', respond, {
    ...turn,
    input: items(20_000, () => ({ role: 'user', content: 'a' })),
  }),
  json('as many input items as allowed', respond, {
    ...turn,
    input: items(9_999, () => ({ role: 'user', content: 'a' })),
  }),
  json('many content parts', respond, {
    ...turn,
    input: [{ role: 'user', content: items(20_000, () => ({ type: 'input_text', text: 'a' })) }],
  }),
  text(
    'an array of empty objects in an unknown field',
    respond,
    `{"model":"demo-fast","input":"Hi","store":false,"x":[${fill('{},')}0]}`,
  ),
  json('an array of numbers', 'POST /v1/embeddings', {
    model: 'local-hash',
    input: items(200_000, (index) => index % 10),
  }),
  json('many texts to embed', 'POST /v1/embeddings', {
    model: 'local-hash',
    input: items(100_000, () => 'a'),
  }),
  json('one long text to embed', 'POST /v1/embeddings', { model: 'local-hash', input: fill('a') }),
  json('one long word', respond, { ...turn, input: fill('a') }),
  json('only spaces', respond, { ...turn, input: fill(' ') }),
  json('only line breaks', respond, { ...turn, input: fill('\n') }),
  json('control tokens', respond, { ...turn, input: fill('<|im_start|>') }),
  json('markers of citations', respond, { ...turn, input: fill('【1:2†') }),
  json('escapes', respond, { ...turn, input: '\u0001'.repeat(mebibyte / 6) }),
  json('a long word to count', 'POST /v1/responses/input_tokens', {
    model: 'demo-fast',
    input: fill('a'),
  }),
  json('mixed letters to count', 'POST /v1/responses/input_tokens', {
    model: 'demo-fast',
    input: fill('aAbBcC'),
  }),
  json('spaces to count', 'POST /compat/v1/messages/count_tokens', {
    ...asked,
    messages: [{ role: 'user', content: fill(' ') }],
  }),
  json('emoji to count', 'POST /v1/responses/input_tokens', {
    model: 'demo-fast',
    input: fill('👨‍👩‍👧'),
  }),
  json('a long model name', respond, { ...turn, model: fill('a'), input: 'Hi' }),
  json('a long id', respond, { ...turn, previous_response_id: fill('r'), input: 'Hi' }),
  json('many entries of metadata', respond, {
    ...turn,
    input: 'Hi',
    metadata: Object.fromEntries(items(50_000, (index) => [`k${index}`, 'v'])),
  }),
  json('many tools', respond, {
    ...turn,
    input: 'Hi',
    tools: items(15_000, (index) => ({ type: 'function', name: `f${index}`, parameters: {} })),
  }),
  json('as many tools as allowed', respond, {
    ...turn,
    input: 'Hi',
    tools: items(1_024, (index) => ({
      type: 'function',
      name: `f${index}`,
      parameters: { type: 'object', properties: { a: { type: 'string', pattern: evil[0] } } },
    })),
  }),
  json('a schema of doubling references', respond, {
    ...turn,
    input: 'Hi',
    text: schemaFormat(doublingSchema(200)),
  }),
  json('a schema of many alternatives', respond, {
    ...turn,
    input: 'Hi',
    text: schemaFormat({ anyOf: items(20_000, (at) => ({ const: `v${at}` })) }),
  }),
  json('a schema of hostile patterns', respond, {
    ...turn,
    input: 'a'.repeat(2_000),
    text: schemaFormat({ type: 'string', allOf: evil.map((pattern) => ({ pattern })) }),
  }),
  json('a schema of many properties', respond, {
    ...turn,
    input: 'Hi',
    text: schemaFormat({
      type: 'object',
      properties: Object.fromEntries(items(20_000, (at) => [`p${at}`, { type: 'string' }])),
      required: items(20_000, (at) => `p${at}`),
    }),
  }),
  json('a data URL of no image', respond, {
    ...turn,
    input: [
      {
        role: 'user',
        content: [{ type: 'input_image', image_url: `data:image/png;base64,${fill('AAAA')}` }],
      },
    ],
  }),
  json('messages of one letter', message, {
    ...asked,
    messages: items(20_000, (at) => ({ role: at % 2 ? 'assistant' : 'user', content: 'a' })),
  }),
  json('many stop sequences', message, {
    ...asked,
    stop_sequences: items(20_000, () => 'a'.repeat(40)),
  }),
  json('one long stop sequence', message, { ...asked, stop_sequences: [fill('a')] }),
  json('many tools of messages', message, {
    ...asked,
    tools: items(15_000, (at) => ({ name: `f${at}`, input_schema: { type: 'object' } })),
  }),
  json('many documents to rank', 'POST /v1/rerank', {
    model: 'none',
    query: 'a',
    documents: items(100_000, () => 'a'),
  }),
  json('an agent of many tools', 'POST /v1/agents', {
    name: 'a',
    model: 'demo-fast',
    tools: items(15_000, (at) => ({ type: 'function', name: `f${at}` })),
  }),
  json('a long search', 'POST /v1/files/search', { query: fill('%_ ') }),
  json('a folder with a long name', 'POST /v1/folders', { name: fill('../') }),
  json('many items of a conversation', 'POST /v1/conversations', {
    items: items(15_000, () => ({ type: 'message', role: 'user', content: 'a' })),
  }),
  {
    ...json('many translations', 'PATCH /v1/translations/de', {
      a: Object.fromEntries(items(40_000, (at) => [`k${at}`, 'v'])),
    }),
    isAdmin: true,
  },
  {
    ...json('a theme of many fonts', 'PUT /v1/branding/theme', {
      fonts: items(5_000, () => 'serif'),
    }),
    isAdmin: true,
  },
  {
    name: 'a logo of nested groups',
    operation: 'POST /v1/branding/logo',
    headers: { 'content-type': 'image/svg+xml' },
    body: () =>
      `<svg xmlns="http://www.w3.org/2000/svg">${'<g>'.repeat(70_000)}${'</g>'.repeat(70_000)}</svg>`,
    isAdmin: true,
  },
  {
    name: 'a logo of growing entities',
    operation: 'POST /v1/branding/logo',
    headers: { 'content-type': 'image/svg+xml' },
    body: () =>
      `<!DOCTYPE svg [${items(20, (at) => `<!ENTITY e${at} "${`&e${at - 1};`.repeat(at === 0 ? 0 : 10)}x">`).join('')}]><svg xmlns="http://www.w3.org/2000/svg"><text>&e19;</text></svg>${' '.repeat(100_000)}`,
    isAdmin: true,
  },
  {
    name: 'a form of many parts',
    operation: 'POST /v1/files',
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
    body: () => `${fill('--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n')}--b--\r\n`,
  },
  {
    name: 'a form of a long boundary',
    operation: 'POST /v1/files',
    headers: { 'content-type': `multipart/form-data; boundary=${'b'.repeat(70)}` },
    body: () => fill(`--${'b'.repeat(69)}`),
  },
  {
    name: 'many headers',
    operation: respond,
    headers: Object.fromEntries(items(150, (at) => [`x-${at}`, 'a'.repeat(60)])),
    body: () => JSON.stringify({ ...turn, input: fill('a b ') }),
  },
  ...bombs(),
]
