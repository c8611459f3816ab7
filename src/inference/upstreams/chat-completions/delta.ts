import type { GenerationEvent, TokenLogprob } from '#inference/events.ts'
import { createToolCalls, type ToolCallPiece, type ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tool-names.ts'
import { isRecord } from '#lib/json.ts'
import { Blocks } from './blocks.ts'
import { Citations } from './citations.ts'
import type { TextField } from './plain-chunk.ts'
import { createThinkTagSplitter, type ThinkTagReader, type ThinkTagSplitter } from './think-tags.ts'
import type { ChatContentPart, ChatDelta, ChatFunctionPart, ChatToolCallPart } from './wire.ts'

export type DeltaReaderOptions = {
  toolNames: ToolNames
  /** Whether reasoning comes inside the content as `<think>…</think>`. */
  thinkTags: boolean
  /** Call ids that the request's history uses. */
  takenCallIds: ReadonlySet<string>
  toolArgumentCharsMax: number
}

type Logprobs = readonly TokenLogprob[] | undefined

/** Whitespace that may turn out to stand between two blocks is held up to here. */
const heldCharsMax = 1_024

/** What was said so far, piece by piece, and the blocks that it became. */
export type DeltaState = {
  readonly blocks: Blocks
  readonly calls: ToolCalls
  readonly citations: Citations
  readonly splitter: ThinkTagSplitter | null
  /** What came before a block of its kind was worth opening: whitespace. */
  heldText: string
  heldLogprobs: TokenLogprob[]
  heldReasoning: string
  sawText: boolean
  sawReasoning: boolean
}

export function openDelta(options: DeltaReaderOptions): DeltaState {
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

/** A message that repeats the whole answer: only what no delta has said is read. */
export function readUnseen(state: DeltaState, message: ChatDelta, writing: Writing): void {
  readDelta(state, leaveUnseen(state, message), writing)
}

/** Closes what is open. `cut`: the model was stopped in the middle. */
export function endDelta(state: DeltaState, out: GenerationEvent[], cut: boolean): void {
  state.splitter?.end(contentReader(state, { logprobs: undefined, out }))
  state.calls.close(out, cut)
  state.blocks.close(out, !cut)
}

type Writing = { logprobs: Logprobs; out: GenerationEvent[] }

/** Reads one piece of what a choice says. */
export function readDelta(state: DeltaState, delta: ChatDelta, writing: Writing): void {
  // A server that sends both names sends the same text twice.
  const reasoning = isText(delta.reasoning_content) ? delta.reasoning_content : delta.reasoning
  if (isText(reasoning)) writeReasoning(state, reasoning, writing.out)
  const { content } = delta
  if (typeof content === 'string') {
    if (content !== '') readContent(state, content, writing)
  } else if (Array.isArray(content)) {
    for (const part of content) if (isRecord(part)) readPart(state, part, writing)
  }
  if (isText(delta.refusal)) writeRefusal(state, delta.refusal, writing.out)
  if (Array.isArray(delta.annotations)) state.citations.readAnnotations(delta.annotations)
  if (Array.isArray(delta.tool_calls)) readToolCalls(state, delta.tool_calls, writing.out)
  if (isRecord(delta.function_call)) {
    pushToolCall(state, { ...noPiece, ...readFunction(delta.function_call) }, writing.out)
  }
}

/** Reads one piece of which it is known that it is text alone, and in which field. */
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

function leaveUnseen(state: DeltaState, message: ChatDelta): ChatDelta {
  const { content, refusal, reasoning, reasoning_content, annotations, ...calls } = message
  return {
    ...(state.sawText ? {} : { content, refusal }),
    ...(state.sawReasoning ? {} : { reasoning, reasoning_content }),
    ...(state.calls.count() > 0 ? {} : calls),
    annotations,
  }
}

function readContent(state: DeltaState, content: string, writing: Writing): void {
  if (state.splitter === null) writeText(state, content, writing)
  else state.splitter.push(content, contentReader(state, writing))
}

function contentReader(state: DeltaState, writing: Writing): ThinkTagReader {
  return {
    reasoning: (text) => writeReasoning(state, text, writing.out),
    text: (text) => writeText(state, text, writing),
  }
}

/** Content as a list of parts; Mistral puts its reasoning there. */
function readPart(state: DeltaState, part: ChatContentPart, writing: Writing): void {
  if (part.type === 'thinking') {
    const { thinking } = part
    const inner: unknown[] = Array.isArray(thinking) ? thinking : [{ text: thinking }]
    for (const piece of inner) {
      if (isRecord(piece) && isText(piece['text'])) {
        writeReasoning(state, piece['text'], writing.out)
      }
    }
  } else if (isText(part.text)) {
    readContent(state, part.text, writing)
  } else if (isText(part.refusal)) {
    writeRefusal(state, part.refusal, writing.out)
  }
}

function writeText(state: DeltaState, text: string, { logprobs, out }: Writing): void {
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

/** Whitespace alone opens no block: models put it between their reasoning and a tool call. */
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

const noPiece: ToolCallPiece = { index: 0, indexGiven: false, id: '', name: '', text: '' }

function readToolCalls(state: DeltaState, parts: readonly unknown[], out: GenerationEvent[]): void {
  for (const [place, part] of parts.entries()) {
    if (!isRecord(part)) continue
    const { index, id, function: call }: ChatToolCallPart = part
    const piece: ToolCallPiece = {
      index: typeof index === 'number' ? index : place,
      indexGiven: typeof index === 'number',
      id: typeof id === 'string' ? id : '',
      ...readFunction(call),
    }
    pushToolCall(state, piece, out)
  }
}

function readFunction(call: unknown): { name: string; text: string } {
  if (!isRecord(call)) return { name: '', text: '' }
  const { name, arguments: given }: ChatFunctionPart = call
  const text = typeof given === 'string' ? given : given == null ? '' : JSON.stringify(given)
  return { name: typeof name === 'string' ? name : '', text }
}

function pushToolCall(state: DeltaState, piece: ToolCallPiece, out: GenerationEvent[]): void {
  if (piece.id === '' && piece.name === '' && piece.text === '') return
  dropHeld(state)
  state.calls.push(piece, out)
}
