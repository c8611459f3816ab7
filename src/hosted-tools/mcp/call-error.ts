import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'

/** `error` of an `mcp_call` item. */
export type McpCallError =
  | Failure
  | { type: 'mcp_tool_execution_error'; content: readonly { type: 'text'; text: string }[] }

/** A failed exchange with a server. */
type Failure = { type: 'http_error' | 'mcp_protocol_error'; code: number; message: string }

type Sdk = typeof import('@modelcontextprotocol/client')

/** The longest error message that is kept; some servers quote the request in it. */
const messageCharsMax = 2_000
/** JSON-RPC error code. */
const internalError = -32_603

/** Describes an error without internal details. */
export function describeFailure(error: unknown, sdk: Sdk): Failure {
  const own = findAppError(error)
  if (own !== null) return { type: 'http_error', code: own.status, message: own.message }
  if (error instanceof sdk.UnauthorizedError) return httpError(401)
  if (error instanceof sdk.SdkHttpError && error.status !== undefined) {
    return httpError(error.status)
  }
  if (error instanceof sdk.SdkError && error.code === sdk.SdkErrorCode.RequestTimeout) {
    return { type: 'http_error', code: 504, message: 'The server did not respond in time.' }
  }
  if (error instanceof sdk.ProtocolError) {
    const message = error.message.slice(0, messageCharsMax)
    return { type: 'mcp_protocol_error', code: error.code, message }
  }
  const message = 'The server violated the protocol.'
  return { type: 'mcp_protocol_error', code: internalError, message }
}

/** The text of an error for the model and for list items. */
export function errorText(error: McpCallError): string {
  if (error.type !== 'mcp_tool_execution_error') return error.message
  return error.content.map(({ text }) => text).join('\n')
}

function httpError(status: number): Failure {
  const message = `The server responded with HTTP status ${status}.`
  return { type: 'http_error', code: status, message }
}

/** The client library wraps the errors of `fetch`, sometimes several times. */
const wrapDepthMax = 4

function findAppError(error: unknown): AppError | null {
  let inner = error
  for (let depth = 0; depth < wrapDepthMax; depth++) {
    if (inner instanceof AppError) return inner
    if (!isRecord(inner)) return null
    const data = inner['data']
    inner = inner['cause'] ?? (isRecord(data) ? data['cause'] : undefined)
  }
  return null
}
