const usage = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 60 },
  completion_tokens_details: { reasoning_tokens: 5 },
}
const choice = (content: string) => [
  { index: 0, finish_reason: 'stop', message: { role: 'assistant', content } },
]
const frame = (json: object) => `data: ${JSON.stringify(json)}\n\n`
const delta = (content: string) => frame({ choices: [{ index: 0, delta: { content } }] })

/** An upstream of every kind that reports its usage; it answers by the text of the request. */
export async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  if (pathname.endsWith('/models')) return Response.json({ data: [] })
  const body = Object(await request.json())
  if (pathname.endsWith('/embeddings')) {
    const data = body.input.map((_: string, index: number) => ({ index, embedding: [1, 2] }))
    return Response.json(
      body.input.includes('a') ? { data, usage: { prompt_tokens: 7 } } : { data },
    )
  }
  if (pathname.endsWith('/rerank')) {
    const results = body.documents.map((_: string, index: number) => ({
      index,
      relevance_score: 1,
    }))
    return Response.json({ results, usage: { total_tokens: 9 } })
  }
  if (pathname.endsWith('/tokenize')) return Response.json({ count: 42, max_model_len: 100 })
  const prompt = JSON.stringify(body.messages)
  if (prompt.includes('refuse')) return Response.json({ error: { message: 'no' } }, { status: 400 })
  if (prompt.includes('endless')) {
    const words = async function* () {
      yield delta('word '.repeat(10))
      await new Promise(() => {})
    }
    return new Response(words(), { headers: { 'content-type': 'text/event-stream' } })
  }
  if (body.stream !== true) return Response.json({ choices: choice('not JSON'), usage })
  const end = frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  const stream = `${delta('hi')}${end}${frame({ choices: [], usage })}data: [DONE]\n\n`
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
}
