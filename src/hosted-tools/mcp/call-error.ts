import { AppError } from '#lib/errors.ts'
import { isRecord } from '#lib/json.ts'

/** `error` of an `mcp_call` item. */
export type McpCallError =
  | { type: 'http_error' | 'mcp_protocol_error'; code: number; message: string }
  | { type: 'mcp_tool_execution_error'; content: readonly { type: 'text'; text: string }[] }

type Sdk = typeof import('@modelcontextprotocol/client')

/** Servers explain at length, and quote what they were sent. */
const messageCharsMax = 2_000
/** As JSON-RPC numbers them. */
const internalError = -32_603

/** What went wrong between us and a server, without what is ours. */
export function describeFailure(error: unknown, sdk: Sdk): McpCallError {
  const own = ownErrorIn(error)
  if (own !== null) return { type: 'http_error', code: own.status, message: own.message }
  if (error instanceof sdk.UnauthorizedError) return httpError(401)
  if (error instanceof sdk.SdkHttpError && error.status !== undefined) {
    return httpError(error.status)
  }
  if (error instanceof sdk.SdkError && error.code === sdk.SdkErrorCode.RequestTimeout) {
    return { type: 'http_error', code: 504, message: 'The server did not answer in time.' }
  }
  if (error instanceof sdk.ProtocolError) {
    const message = error.message.slice(0, messageCharsMax)
    return { type: 'mcp_protocol_error', code: error.code, message }
  }
  const message = 'The server did not answer in the way of the protocol.'
  return { type: 'mcp_protocol_error', code: internalError, message }
}

/** The text of an error as the model reads it, and as a list item shows it. */
export function errorText(error: McpCallError): string {
  if (error.type !== 'mcp_tool_execution_error') return error.message
  return error.content.map(({ text }) => text).join('\n')
}

function httpError(status: number): McpCallError {
  const message = `The server answered with HTTP status ${status}.`
  return { type: 'http_error', code: status, message }
}

/** The library wraps what our fetch throws, sometimes more than once. */
const wrappingsMax = 4

function ownErrorIn(error: unknown): AppError | null {
  let inner = error
  for (let depth = 0; depth < wrappingsMax; depth++) {
    if (inner instanceof AppError) return inner
    if (!isRecord(inner)) return null
    const data = inner['data']
    inner = inner['cause'] ?? (isRecord(data) ? data['cause'] : undefined)
  }
  return null
}
