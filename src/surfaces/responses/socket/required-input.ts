import type { StoredItem } from '#responses/response.ts'
import type { RequiredInput } from '#surfaces/responses/schema/steer-events.ts'

/** What the client of a response has to send before the conversation can go on, without the results. */
export function requiredInput(output: readonly StoredItem[]): readonly RequiredInput[] {
  const answered = new Set(
    output.filter(({ type }) => type.endsWith('_output')).map((item) => item['call_id']),
  )
  return output.flatMap((item) => (answered.has(item['call_id']) ? [] : (requiredFor(item) ?? [])))
}

/** Null: nothing, also for a call that was cut off and for one whose result may come later. */
function requiredFor(item: StoredItem): RequiredInput | null {
  const { id, type, status, name } = item
  if (item['async'] === true || status === 'incomplete') return null
  const call_id = String(item['call_id'])
  switch (type) {
    case 'function_call':
      return { type: 'function_call_output', call_id, name: String(name) }
    case 'custom_tool_call':
    case 'computer_call':
    case 'shell_call':
    case 'apply_patch_call':
      return { type: `${type}_output`, call_id }
    case 'tool_search_call':
      if (item['execution'] !== 'client') return null
      return { type: 'tool_search_output', call_id, execution: 'client' }
    case 'mcp_approval_request':
      return { type: 'mcp_approval_response', approval_request_id: id }
    default:
      return null
  }
}
