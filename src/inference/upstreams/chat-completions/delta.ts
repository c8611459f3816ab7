import type { GenerationEvent, TokenLogprob } from '#inference/events.ts'
import { createToolCalls, type ToolCallPiece, type ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tools.ts'
import { readJsonText, readString } from '#inference/upstream-fields.ts'
import { isRecord } from '#lib/json.ts'
import { Blocks } from './blocks.ts'
import { Citations } from './citations.ts'
import type { TextField } from './read.ts'
import { createThinkTagSplitter, type ThinkTagReader, type ThinkTagSplitter } from './think-tags.ts'
import type { ChatContentPart, ChatDelta, ChatFunctionPart, ChatToolCallPart } from './wire.ts'

export type DeltaOptions = {
  toolNames: ToolNames
  /** Whether reasoning is sent inside the content as `<think>…</think>`. */
  thinkTags: boolean
  /** Call ids in the history of the request. */
  takenCallIds: ReadonlySet<string>
  toolArgumentCharsMax: number
}

/** The most whitespace that is held because it may separate two blocks, in characters. */
const heldCharsMax = 1_024

/** The content of the response so far and its blocks. */
export type DeltaState = {
  readonly blocks: Blocks
  readonly calls: ToolCalls
  readonly citations: Citations
  readonly splitter: ThinkTagSplitter | null
  /** Whitespace before the first other character of a block, which opens the block. */
  heldText: string
  heldLogprobs: TokenLogprob[]
  heldReasoning: string
  sawText: boolean
  sawReasoning: boolean
}

export function createDeltaState(options: DeltaOptions): DeltaState {
  const citations = new Citations()
  const blocks = new Blocks(citations)
  return {
    blocks,
    citations,
    calls: createToolCalls({
      head: options.toolNames.head,
      openBlock: (out) => blocks.claim(out),
      takenCallIds: options.takenCallIds,
      heldCharsMax: options.toolArgumentCharsMax,
    }),
    splitter: options.thinkTags ? createThinkTagSplitter() : null,
    heldText: '',
    heldLogprobs: [],
    heldReasoning: '',
    sawText: false,
    sawReasoning: false,
  }
}

/** Reads a message that repeats the whole response: only content that no delta contained. */
export function readUnstreamed(state: DeltaState, message: ChatDelta, output: Output): void {
  readDelta(state, pickUnstreamed(state, message), output)
}

/** Closes the open block and calls. `cut`: the output was truncated. */
export function endDelta(state: DeltaState, out: GenerationEvent[], cut: boolean): void {
  state.splitter?.end(contentReader(state, { logprobs: undefined, out }))
  state.calls.close(out, cut)
  state.blocks.close(out, !cut)
}

type Output = { logprobs: readonly TokenLogprob[] | undefined; out: GenerationEvent[] }

/** Reads one increment of a choice. */
export function readDelta(state: DeltaState, delta: ChatDelta, output: Output): void {
  // A server that sends both fields sends the same text in both.
  const reasoning = isText(delta.reasoning_content) ? delta.reasoning_content : delta.reasoning
  if (isText(reasoning)) writeReasoning(state, reasoning, output.out)
  const { content } = delta
  if (typeof content === 'string') {
    if (content !== '') readContent(state, content, output)
  } else if (Array.isArray(content)) {
    for (const part of content) if (isRecord(part)) readPart(state, part, output)
  }
  if (isText(delta.refusal)) writeRefusal(state, delta.refusal, output.out)
  if (Array.isArray(delta.annotations)) state.citations.readAnnotations(delta.annotations)
  if (Array.isArray(delta.tool_calls)) readToolCalls(state, delta.tool_calls, output.out)
  if (isRecord(delta.function_call)) {
    const piece = { index: 0, indexGiven: false, id: '', ...readFunction(delta.function_call) }
    pushToolCall(state, piece, output.out)
  }
}

/** Reads an increment that contains only text, in this field. */
export function readText(
  state: DeltaState,
  field: TextField,
  text: string,
  out: GenerationEvent[],
): void {
  if (text === '') return
  if (field === 'content') readContent(state, text, { logprobs: undefined, out })
  else writeReasoning(state, text, out)
}

function pickUnstreamed(state: DeltaState, message: ChatDelta): ChatDelta {
  const { content, refusal, reasoning, reasoning_content, annotations, ...calls } = message
  return {
    ...(state.sawText ? {} : { content, refusal }),
    ...(state.sawReasoning ? {} : { reasoning, reasoning_content }),
    ...(state.calls.count() > 0 ? {} : calls),
    annotations,
  }
}

function readContent(state: DeltaState, content: string, output: Output): void {
  if (state.splitter === null) writeText(state, content, output)
  else state.splitter.push(content, contentReader(state, output))
}

function contentReader(state: DeltaState, output: Output): ThinkTagReader {
  return {
    reasoning: (text) => writeReasoning(state, text, output.out),
    text: (text) => writeText(state, text, output),
  }
}

/** Content as a list of parts, which Mistral uses for reasoning. */
function readPart(state: DeltaState, part: ChatContentPart, output: Output): void {
  if (part.type === 'thinking') {
    const { thinking } = part
    const inner: unknown[] = Array.isArray(thinking) ? thinking : [{ text: thinking }]
    for (const piece of inner) {
      if (isRecord(piece) && isText(piece['text'])) {
        writeReasoning(state, piece['text'], output.out)
      }
    }
  } else if (isText(part.text)) {
    readContent(state, part.text, output)
  } else if (isText(part.refusal)) {
    writeRefusal(state, part.refusal, output.out)
  }
}

function writeText(state: DeltaState, text: string, { logprobs, out }: Output): void {
  if (state.blocks.isOpen('answer')) {
    state.blocks.append(text, out, logprobs)
    return
  }
  state.heldText += text
  if (logprobs !== undefined) state.heldLogprobs.push(...logprobs)
  if (isBlank(state.heldText)) return
  state.sawText = true
  open(state, 'answer', out)
  const { heldText, heldLogprobs } = state
  dropHeld(state)
  state.blocks.append(heldText, out, logprobs === undefined ? undefined : heldLogprobs)
}

function writeRefusal(state: DeltaState, text: string, out: GenerationEvent[]): void {
  if (!state.blocks.isOpen('refusal')) open(state, 'refusal', out)
  state.sawText = true
  state.blocks.append(text, out)
}

function writeReasoning(state: DeltaState, text: string, out: GenerationEvent[]): void {
  if (state.blocks.isOpen('reasoning')) {
    state.blocks.append(text, out)
    return
  }
  state.heldReasoning += text
  if (isBlank(state.heldReasoning)) return
  state.sawReasoning = true
  open(state, 'reasoning', out)
  const { heldReasoning } = state
  dropHeld(state)
  state.blocks.append(heldReasoning, out)
}

function open(
  state: DeltaState,
  kind: 'answer' | 'refusal' | 'reasoning',
  out: GenerationEvent[],
): void {
  state.calls.close(out, false)
  state.blocks.begin(kind, out)
}

/** Whitespace alone opens no block: models emit it between their reasoning and a tool call. */
function isBlank(text: string): boolean {
  return text.length <= heldCharsMax && !/\S/.test(text)
}

function dropHeld(state: DeltaState): void {
  state.heldText = ''
  state.heldReasoning = ''
  state.heldLogprobs = []
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function readToolCalls(state: DeltaState, parts: readonly unknown[], out: GenerationEvent[]): void {
  for (const [position, part] of parts.entries()) {
    if (!isRecord(part)) continue
    const { index, id, function: call }: ChatToolCallPart = part
    const piece: ToolCallPiece = {
      index: typeof index === 'number' ? index : position,
      indexGiven: typeof index === 'number',
      id: readString(id),
      ...readFunction(call),
    }
    pushToolCall(state, piece, out)
  }
}

function readFunction(call: unknown): { name: string; text: string } {
  if (!isRecord(call)) return { name: '', text: '' }
  const { name, arguments: input }: ChatFunctionPart = call
  return { name: readString(name), text: readJsonText(input) }
}

function pushToolCall(state: DeltaState, piece: ToolCallPiece, out: GenerationEvent[]): void {
  if (piece.id === '' && piece.name === '' && piece.text === '') return
  dropHeld(state)
  state.calls.push(piece, out)
}
