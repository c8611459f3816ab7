import type { HostedToolItem } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import { deltaHead } from '#surfaces/responses/frames.ts'
import { withoutSearchResults } from '#surfaces/responses/show.ts'
import type { EventOf, ItemContext, ItemForm, OpenItem } from './item.ts'

/** The progress events that clients know; any other event type breaks strict ones. */
export const hostedStages: Readonly<Record<string, readonly string[]>> = {
  web_search_call: ['in_progress', 'searching', 'completed'],
  file_search_call: ['in_progress', 'searching', 'completed'],
  code_interpreter_call: ['in_progress', 'interpreting', 'completed'],
  image_generation_call: ['in_progress', 'generating', 'completed'],
  mcp_call: ['in_progress', 'completed', 'failed'],
  mcp_list_tools: ['in_progress', 'completed', 'failed'],
}

/** Where the prefix is not the type without `_call`. */
const idPrefixes: Readonly<Record<string, string>> = {
  compaction: 'cmp_',
  file_search_call: 'fs_',
  mcp_list_tools: 'mcpl_',
  mcp_approval_request: 'mcpr_',
}

export function openHostedTool(
  start: EventOf<'hosted-tool-start'>,
  { frames, outputIndex, includeSearchResults }: ItemContext,
): OpenItem {
  const id = idOf(start.item)
  const place = { item_id: id, output_index: outputIndex }
  const head = deltaHead('response.mcp_call_arguments.delta', place)
  let current: HostedToolItem = start.item
  let written: string | null = null
  const item = (form: ItemForm) => {
    const isWhole = form === 'stored' || includeSearchResults
    return { ...(isWhole ? current : withoutSearchResults(current)), id }
  }
  const itemFrame = (stage: 'added' | 'done') =>
    frames.frame(`response.output_item.${stage}`, {
      output_index: outputIndex,
      item: item('shown'),
    })

  /** Once the arguments are complete, if they were streamed at all. */
  const endArguments = () => {
    if (written === null) return ''
    const done = { ...place, arguments: written }
    written = null
    return frames.frame('response.mcp_call_arguments.done', done)
  }
  const progress = (stage: string) => {
    const done = stage === 'in_progress' ? '' : endArguments()
    if (!hostedStages[current.type]?.includes(stage)) return done
    return done + frames.frame(`response.${current.type}.${stage}`, place)
  }
  return {
    start: () => itemFrame('added'),
    push(event) {
      if (event.type === 'hosted-tool-progress') return progress(event.stage)
      assert(event.type === 'hosted-tool-delta', `${event.type} in a hosted tool`)
      written = (written ?? '') + event.text
      current = { ...current, arguments: written }
      return frames.delta(head, event.text)
    },
    end(event) {
      assert(event.type === 'hosted-tool-end', `${event.type} ends a hosted tool`)
      const done = endArguments()
      current = event.item ?? { ...current, status: 'incomplete' }
      return done + itemFrame('done')
    },
    item: (_, form) => item(form),
  }
}

/** Adapters take the ids of upstreams off; one that is left is ours, and somebody refers to it. */
function idOf({ id, type }: HostedToolItem): string {
  return typeof id === 'string' ? id : newId(idPrefixes[type] ?? `${type.replace(/_call$/, '')}_`)
}
