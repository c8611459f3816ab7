import { readEarlierResults } from '#hosted-tools/web-search/results.ts'
import type { HostedToolItem } from '#inference/events.ts'
import { newId } from '#lib/id.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import type { TextSeal } from '#sealing/seals.ts'
import type { BlockContext, BlockSink, EventOf, OpenBlock } from './blocks.ts'
import type { ContentBlock } from './message.ts'

/** Items without output of their own: the model has used what they hold. */
const silentItems: ReadonlySet<string> = new Set([
  'compaction',
  'file_search_call',
  'mcp_list_tools',
])

/**
 * A tool that the gateway or the upstream runs: a block for the call and one for the result if the
 * format has them, otherwise null, because clients fail on unknown blocks; the tally names its output.
 */
export function openHostedTool(
  { item }: EventOf<'hosted-tool-start'>,
  context: BlockContext,
): OpenBlock | null {
  if (item.type === 'mcp_call') return openMcpCall(item)
  if (item.type === 'web_search_call') return openWebSearch(context, item)
  if (!silentItems.has(item.type)) context.tally.omitted.add(item.type)
  return null
}

function openMcpCall(item: HostedToolItem): OpenBlock {
  const id = newId('mcptoolu_')
  let args = readText(item['arguments'])
  let isWritten = false

  const writeCall = (sink: BlockSink, json: string): string => {
    if (isWritten) return ''
    isWritten = true
    return whole(sink, {
      type: 'mcp_tool_use',
      id,
      name: readText(item['name']),
      server_name: readText(item['server_label']),
      // Not as deltas: most clients read the input of this block type from its start.
      input: asRecord(parseJson(json)),
    })
  }
  return {
    push(sink, event) {
      if (event.type === 'hosted-tool-delta') args += event.text
      return event.type === 'hosted-tool-progress' && event.stage === 'calling'
        ? writeCall(sink, args)
        : ''
    },
    end(sink, event) {
      const ended = event.type === 'hosted-tool-end' ? event.item : null
      if (ended === null) return ''
      const { arguments: finalArgs, error } = ended
      return (
        writeCall(sink, typeof finalArgs === 'string' ? finalArgs : args) +
        whole(sink, {
          type: 'mcp_tool_result',
          tool_use_id: id,
          is_error: isRecord(error) || typeof error === 'string',
          content: [{ type: 'text', text: resultText(ended) }],
        })
      )
    },
  }
}

function resultText({ output, error }: HostedToolItem): string {
  if (typeof error === 'string') return error
  if (!isRecord(error)) return readText(output)
  const content = Array.isArray(error['content']) ? error['content'] : []
  const texts = content.map((part) => readText(asRecord(part)['text']))
  return texts.length > 0 ? texts.join('\n') : readText(error['message'])
}

/**
 * The query of an upstream's search is known at the end, that of the gateway's own before it runs. Other
 * actions than searches have no representation.
 */
function openWebSearch({ tally, searchSeal }: BlockContext, begun: HostedToolItem): OpenBlock {
  const id = newId('srvtoolu_')
  let isWritten = false

  const writeCall = (sink: BlockSink, action: JsonObject): string => {
    if (isWritten) return ''
    isWritten = true
    const input = JSON.stringify({ query: readText(action['query']) })
    return (
      sink.start({ type: 'server_tool_use', id, name: 'web_search', input: {}, ...direct }) +
      sink.delta('input_json_delta', input) +
      sink.stop()
    )
  }
  return {
    push(sink, event) {
      const action = asRecord(begun['action'])
      const isKnown = action['type'] === 'search' && typeof action['query'] === 'string'
      return isKnown && event.type === 'hosted-tool-progress' ? writeCall(sink, action) : ''
    },
    end(sink, event) {
      const item = event.type === 'hosted-tool-end' ? asRecord(event.item) : {}
      const action = asRecord(item['action'])
      // A call that was written needs a result.
      if (action['type'] !== 'search' && !isWritten) return ''
      tally.webSearches++
      const content = searchContent(item, searchSeal)
      return (
        writeCall(sink, action) +
        whole(sink, { type: 'web_search_tool_result', tool_use_id: id, content, ...direct })
      )
    },
  }
}

const direct = { caller: { type: 'direct' } }

/** The results of the gateway's own search carry their text sealed, for the next turn. */
function searchContent({ action, results, error }: JsonObject, seal: TextSeal): unknown {
  if (isRecord(error)) {
    return { type: 'web_search_tool_result_error', error_code: readText(error['code']) }
  }
  if (Array.isArray(results)) {
    return readEarlierResults(results).map(({ url, title, text, age }) => ({
      type: 'web_search_result',
      url,
      title,
      encrypted_content: seal.seal(text),
      page_age: age,
    }))
  }
  const { sources } = asRecord(action)
  return Array.isArray(sources) ? sources.flatMap(renderSource) : []
}

function renderSource(source: unknown): object[] {
  const { url, title } = asRecord(source)
  if (typeof url !== 'string') return []
  const named = typeof title === 'string' ? title : url
  return [{ type: 'web_search_result', url, title: named, encrypted_content: '', page_age: null }]
}

function whole(sink: BlockSink, block: ContentBlock): string {
  return sink.start(block) + sink.stop()
}

function readText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
