/**
 * Embeds the questions of `search`: a process of its own, with the vectors of the corpus. Model
 * names contain the dimensions: `seeded-384`.
 *
 *     bun bench/embedding-upstream.ts DIMS
 *
 * Prints `{"port":…}` when it listens, and exits when its standard input closes.
 */
import { asRecord, parseJson } from '#lib/json.ts'
import { modelName } from './support/plan.ts'
import { createCorpus } from './support/search-corpus.ts'

const dims = Number(process.argv[2])
const corpus = createCorpus(dims)
/** Cached, since it is not part of the measurement. */
const known = new Map<string, readonly number[]>()
const knownMax = 10_000

function vectorOf(text: string): readonly number[] {
  const found = known.get(text)
  if (found !== undefined) return found
  const made = Array.from(corpus.vectorOf(text))
  if (known.size < knownMax) known.set(text, made)
  return made
}

async function embed(request: Request): Promise<Response> {
  const { input } = asRecord(parseJson(await request.text()))
  const texts = Array.isArray(input) ? input.map(String) : [String(input)]
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: vectorOf(text),
  }))
  return Response.json({ object: 'list', data, usage: { prompt_tokens: 1, total_tokens: 1 } })
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/v1/models': () => Response.json({ object: 'list', data: [{ id: modelName }] }),
    '/v1/embeddings': { POST: embed },
  },
})
console.log(JSON.stringify({ port: server.port }))
process.stdin.on('end', () => process.exit(0)).resume()
