import { isRecord } from '#lib/json.ts'

/**
 * The tools that a conversation calls or refers to anywhere, by name: a deferred tool is offered to
 * the model from then on. It only looks; what is wrong with a block is told elsewhere.
 */
export function findNamedTools(messages: readonly unknown[]): Set<string> {
  const names = new Set<string>()
  const lookAt = (block: unknown) => {
    if (!isRecord(block)) return
    const name = block['type'] === 'tool_use' ? block['name'] : block['tool_name']
    if (typeof name === 'string') names.add(name)
    const { content } = block
    lookAtAll(content)
    if (isRecord(content)) lookAtAll(content['tool_references'])
  }
  const lookAtAll = (blocks: unknown) => {
    if (Array.isArray(blocks)) blocks.forEach(lookAt)
  }
  lookAtAll(messages)
  return names
}
