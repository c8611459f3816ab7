import { cachedByText } from '#lib/cached-by-key.ts'

/** A structured log: one sentence that never varies, and fields that do. */
export type Log = {
  readonly [level in LogLevel]: (message: string, fields?: LogFields) => void
}

type LogLevel = 'debug' | 'info' | 'warn' | 'error'
type LogFields = { readonly [name: string]: unknown }

export type LogOptions = {
  /** Both are read for each line. */
  level: LogLevel
  format: 'json' | 'text'
  /** Takes one line, without its newline. */
  write: (line: string) => void
  now: () => Date
}

const severity: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/** Values that must never reach a log, wherever they stand: API keys, tokens, bearer headers. */
const secretValue =
  /sk-svc-v1-[A-Za-z0-9]+|eyJ[\w-]*\.[\w-]+\.[\w-]*|\b(Bearer|Basic)\s+[^\s"',}]+|([?&](?:token|key|api_key|access_token)=)[^&\s"']+/gi
const secretField =
  /^(authorization|cookie|set-cookie|x-api-key|api[-_]?key|secret|password|token|pepper)$/i
/** The shortest text with a credential: `?key=a`. */
const secretCharsMin = 6
/** Fields that the gateway fills with its own ids and constants, never with a credential. */
const plainFields: ReadonlySet<string> = new Set([
  'request_id',
  'response_id',
  'user_id',
  'key_id',
  'trace_id',
  'outcome',
  'kind',
])
/** Needs no escaping. */
const plainText = /^[\w-]*$/
const fieldDepthMax = 6
/** Messages and names of fields are constants of the program. */
const templatesMax = 4_096

export function createLog(options: LogOptions): Log {
  const timeText = renderedOnce((ms) => new Date(ms).toISOString())
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (severity[level] < severity[options.level]) return
      const render = options.format === 'json' ? renderJson : renderText
      options.write(render({ time: timeText(options.now().getTime()), level, message }, fields))
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** The text of the latest number: lines of one millisecond share theirs. */
function renderedOnce(render: (value: number) => string): (value: number) => string {
  let latest = Number.NaN
  let text = ''
  return (value) => {
    if (value !== latest) text = render(value)
    latest = value
    return text
  }
}

type LineHead = { readonly time: string; readonly level: LogLevel; readonly message: string }

/** A line by concatenation: each request writes one, and building an object first costs twice as much. */
function renderJson({ time, level, message }: LineHead, fields: LogFields): string {
  let line = `{"time":"${time}","level":"${level}"${messageField(message)}`
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined) continue
    const field = fieldOf(name)
    const json = typeof value === 'string' ? textJson(field, value) : valueJson(name, value)
    line = `${line}${field.start}${json}`
  }
  return `${line}}`
}

const messageField = cachedByText(
  templatesMax,
  (message) => `,"message":${JSON.stringify(message)}`,
)

/** What is the same for all values of a field. */
type Field = {
  readonly start: string
  readonly isPlain: boolean
  readonly isSecret: boolean
  /** Whether values repeat. Each path may be another one, and would take the place of a name. */
  readonly repeats: boolean
}

const fieldOf = cachedByText(
  templatesMax,
  (name): Field => ({
    start: `,${JSON.stringify(name)}:`,
    isPlain: plainFields.has(name),
    isSecret: secretField.test(name),
    repeats: name !== 'path',
  }),
)

function textJson({ isPlain, isSecret, repeats }: Field, text: string): string {
  if (isPlain && plainText.test(text)) return `"${text}"`
  if (isSecret) return '"[redacted]"'
  return repeats && text.length <= cachedCharsMax
    ? redactedText(text)
    : JSON.stringify(redact(text))
}

function valueJson(name: string, value: unknown): string {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : 'null'
  return value === null ? 'null' : (JSON.stringify(redactField(name, value, 0)) ?? 'null')
}

/** Names of models and upstreams repeat in most lines. */
const cachedCharsMax = 64
const redactedText = cachedByText(templatesMax, (text) => JSON.stringify(redact(text)))

/** A text with every credential in it replaced. */
export function redact(text: string): string {
  if (text.length < secretCharsMin) return text
  return text.replace(secretValue, (_found, scheme?: string, query?: string) => {
    if (query) return `${query}[redacted]`
    return scheme ? `${scheme} [redacted]` : '[redacted]'
  })
}

function redactFields(fields: object, depth: number): Record<string, unknown> {
  const redacted: Record<string, unknown> = Object.create(null)
  for (const [name, value] of Object.entries(fields)) {
    redacted[name] = redactField(name, value, depth)
  }
  return redacted
}

function redactField(name: string, value: unknown, depth: number): unknown {
  return fieldOf(name).isSecret ? '[redacted]' : redactValue(value, depth)
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return redact(value)
  if (value === null || typeof value !== 'object') return value
  if (depth >= fieldDepthMax) return '[deep]'
  if (value instanceof Error) return describeError(value, depth)
  if (Array.isArray(value)) return value.map((item) => redactValue(item, depth + 1))
  return redactFields(value, depth + 1)
}

function describeError(error: Error, depth: number): Record<string, unknown> {
  return {
    name: error.name,
    message: redact(error.message),
    stack: redact(error.stack ?? ''),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, depth + 1) }),
  }
}

function renderText({ time, level, message }: LineHead, fields: LogFields): string {
  const rest = Object.entries(redactFields(fields, 0))
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${textOf(value)}`)
    .join('')
  return `${time.slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${message}${rest}`
}

/** Quoted unless it is one plain word, so that no value can pass for another field or line. */
function textOf(value: unknown): string {
  if (typeof value === 'string' && plainWord.test(value)) return value
  return (JSON.stringify(value) ?? 'undefined').replace(invisible, (letter) => {
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

const plainWord = /^[\w./:@%+,;*?&#~!()[\]{}$|-]+$/
/** Control characters that JSON leaves, line separators, and changes of direction. */
const invisible = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
