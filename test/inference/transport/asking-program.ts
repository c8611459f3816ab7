import { openTransport, readUntilFailure, request } from './transport-client.ts'

/**
 * A process of its own, since trusted authorities and proxies are read from the environment at start.
 * Asks one URL after another and prints what came of each, as one JSON array of `Outcome`.
 *
 *   bun asking-program.ts <kind of transport> <url> …
 */
export type Outcome =
  | { status: number; text: string; failure: string }
  | { refused: string; why: string }

const [, , kind, ...urls] = process.argv
const transport = openTransport(kind === 'fetch' ? 'fetch' : 'socket', { connectMs: () => 2_000 })
const outcomes: Outcome[] = []
for (const url of urls) outcomes.push(await ask(url))
transport.close()
console.log(JSON.stringify(outcomes))

async function ask(url: string): Promise<Outcome> {
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
