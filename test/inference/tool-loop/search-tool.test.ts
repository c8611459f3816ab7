import { afterEach, expect, test } from 'bun:test'
import type { HostedCall } from '#inference/tool-loop/hosted-tools.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { stopUpstreams, target, texts, upstreamThat } from '#test/support/generations.ts'
import { calling, hostedTools, loopEvents, saying } from './looping.ts'

afterEach(stopUpstreams)

/** A tool whose item has no arguments, but its own fields and states. */
function search(): HostedCall {
  const begin = (args: string) => {
    const parsed = parseJson(args)
    const queries = isRecord(parsed) ? parsed['queries'] : []
    return { type: 'file_search_call', queries, status: 'in_progress' }
  }
  const end = (args: string, status: string, result: string) => ({
    item: { ...begin(args), status },
    stage: 'completed',
    result,
  })
  return {
    isCounted: true,
    streamsArguments: false,
    stages: ['in_progress', 'searching'],
    begin,
    run: async (args) => end(args, 'completed', 'Found it.'),
    refuse: (args, reason) => end(args, 'failed', reason),
  }
}

test('a search is emitted once its queries are known, several one after the other', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'search', '{"queries":["x"]}'], ['b', 'search', '{"queries":["y"]}']) },
    { body: saying('Found.') },
  )
  const events = await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: hostedTools({ search }),
  })
  const shown = (query: string, block: number) => [
    { type: 'hosted-tool-start', block, item: { queries: [query], status: 'in_progress' } },
    { type: 'hosted-tool-progress', block, stage: 'in_progress' },
    { type: 'hosted-tool-progress', block, stage: 'searching' },
    { type: 'hosted-tool-progress', block, stage: 'completed' },
    { type: 'hosted-tool-end', block, item: { queries: [query], status: 'completed' } },
  ]
  expect(events.slice(1, 11)).toMatchObject([...shown('x', 0), ...shown('y', 1)])
  expect(texts(events)).toBe('Found.')
})
