import { openTransport, readUntilFailure, request } from './transport-client.ts'

/**
 * A process of its own, since the trusted authorities are read from the environment at start. Asks
 * each URL of its arguments in turn and prints what came of it, as one JSON array.
 */
type TlsOutcome =
  | { status: number; text: string; failure: string }
  | { refused: string; why: string }

const transport = openTransport({ connectMs: 2_000 })
const outcomes: TlsOutcome[] = []
for (const url of process.argv.slice(2)) outcomes.push(await ask(url))
transport.close()
console.log(JSON.stringify(outcomes))

async function ask(url: string): Promise<TlsOutcome> {
  const large = url.endsWith('/large')
  try {
    const answer = await transport.send(
      request(url, { body: large ? 'x'.repeat(30_000_000) : '{}' }),
    )
    if (large) await Bun.sleep(300)
    const { text, error } = await readUntilFailure(answer)
    return { status: answer.status, text: shorten(text), failure: kindOf(error) }
  } catch (error) {
    return { refused: kindOf(error), why: causeOf(error) }
  }
}

function shorten(text: string): string {
  return text.length > 100 ? `${text.length} characters` : text
}

function kindOf(error: unknown): string {
  return error instanceof Error && 'kind' in error ? String(error.kind) : String(error)
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
}
