/** A structured log: one sentence that never varies, and fields that do. */
export type Log = {
  readonly [level in LogLevel]: (message: string, fields?: LogFields) => void
}

type LogLevel = 'debug' | 'info' | 'warn' | 'error'
type LogFields = { readonly [name: string]: unknown }

export type LogOptions = {
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
const fieldDepthMax = 6

export function createLog(options: LogOptions): Log {
  const at = (level: LogLevel) => {
    if (severity[level] < severity[options.level]) return () => {}
    return (message: string, fields: LogFields = {}) => {
      const record = {
        time: options.now().toISOString(),
        level,
        message,
        ...redactFields(fields, 0),
      }
      options.write(options.format === 'json' ? JSON.stringify(record) : asText(record))
    }
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** A text with every credential in it replaced. */
export function redact(text: string): string {
  return text.replace(secretValue, (_found, scheme?: string, query?: string) => {
    if (query) return `${query}[redacted]`
    return scheme ? `${scheme} [redacted]` : '[redacted]'
  })
}

function redactFields(fields: object, depth: number): Record<string, unknown> {
  // Each request writes a line, and a loop takes half the time of lists of entries.
  const redacted: Record<string, unknown> = Object.create(null)
  for (const [name, value] of Object.entries(fields)) {
    redacted[name] = secretField.test(name) ? '[redacted]' : redactValue(value, depth)
  }
  return redacted
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

function asText(record: { time: string; level: string; message: string }): string {
  const { time, level, message, ...fields } = record
  const rest = Object.entries(fields)
    .map(([name, value]) => `${name}=${textOf(value)}`)
    .join(' ')
  return `${time.slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${message}${rest ? ` ${rest}` : ''}`
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
