/** The five-character SQLSTATE of a PostgreSQL error; undefined for other errors. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return codeOf(error) ?? sqlStateOf(error.cause)
}

/** SQLSTATE classes: 08 connection, 53 out of resources, 57P0x shutting down or starting up. */
const outageState = /^(08|53|57P)/
/** Of the client of PostgreSQL, for connections that broke or could not be opened. */
const connectionCodes = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
])

/** Whether a database error comes from its connection or server, and not from the statement. */
export function isDatabaseOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { cause } = error
  const code = codeOf(error)
  if (error.name === 'PostgresError') return outageState.test(code ?? '')
  if (code !== undefined && connectionCodes.has(code)) return true
  if (isDatabaseOutage(cause)) return true
  // drizzle names the query; a cause that PostgreSQL did not send is the socket's.
  const isQuery = 'query' in error && cause instanceof Error && cause.name !== 'PostgresError'
  return isQuery && codeOf(cause) !== undefined
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
