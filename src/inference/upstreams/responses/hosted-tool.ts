import type { HostedToolItem } from '#inference/events.ts'
import type { JsonObject } from '#lib/json.ts'
import { appendEvent, type BlockSequence, beginBlock, createLane, type Lane } from './sequence.ts'

/** An item of a tool that ran at the upstream. Its fields are forwarded unchanged, without the id. */
export type HostedTool = {
  readonly kind: 'hosted-tool'
  readonly lane: Lane
  /** The latest state of the item. */
  item: HostedToolItem
  stage: string
  isOpen: boolean
}

export function createHostedTool(sequence: BlockSequence, itemType: string): HostedTool {
  const tool: HostedTool = {
    kind: 'hosted-tool',
    lane: createLane(sequence, 'hosted-tool', () => closeBlock(tool)),
    item: { type: itemType },
    stage: '',
    isOpen: false,
  }
  return tool
}

export function announceHostedTool(tool: HostedTool, source: JsonObject): void {
  const { lane } = tool
  const { id: _, ...fields } = source
  tool.item = { ...fields, type: tool.item.type }
  if (lane.begun) return
  tool.isOpen = true
  beginBlock(lane, { type: 'hosted-tool-start', block: lane.block, item: tool.item })
}

export function progressHostedTool(tool: HostedTool, stage: string): void {
  const { lane } = tool
  if (!tool.isOpen || stage === tool.stage) return
  tool.stage = stage
  appendEvent(lane, { type: 'hosted-tool-progress', block: lane.block, stage })
}

function closeBlock(tool: HostedTool): void {
  const { lane } = tool
  if (tool.isOpen)
    appendEvent(lane, { type: 'hosted-tool-end', block: lane.block, item: tool.item })
  tool.isOpen = false
}
