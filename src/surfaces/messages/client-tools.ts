import type { FunctionTool } from '#inference/request.ts'
import type { JsonObject } from '#lib/json.ts'

/**
 * Tools that clients run and that the protocol knows by their type. Models of its vendor know their
 * schemas; others get them as functions with the published schemas.
 */
type ClientTool = {
  /** Matches the type: the name with the date of a version. */
  readonly pattern: RegExp
  readonly description: string
  readonly properties: JsonObject
  readonly required: readonly string[]
}

const path = { type: 'string', description: 'The absolute path of the file or folder.' }
const editing = {
  path,
  file_text: { type: 'string', description: 'For create: the content of the new file.' },
  old_str: {
    type: 'string',
    description: 'For str_replace: the text to replace, which must occur exactly once.',
  },
  new_str: { type: 'string', description: 'For str_replace: the new text.' },
  insert_line: {
    type: 'integer',
    description: 'For insert: the line after which the text is inserted; 0 is the beginning.',
  },
  insert_text: { type: 'string', description: 'For insert: the text.' },
  view_range: {
    type: 'array',
    items: { type: 'integer' },
    description: 'For view of a file: the first and the last line; -1 is the end.',
  },
}

function commandOf(...commands: string[]): JsonObject {
  return { type: 'string', enum: commands, description: 'What to do.' }
}

const clientTools: readonly ClientTool[] = [
  {
    pattern: /^bash_\d{8}$/,
    description:
      'Runs a command in a bash session on the machine of the user. The session keeps its state between calls.',
    properties: {
      command: { type: 'string', description: 'The command. Required unless restart is true.' },
      restart: { type: 'boolean', description: 'Restarts the session.' },
    },
    required: [],
  },
  {
    pattern: /^text_editor_(20241022|20250124)$/,
    description: 'Views, creates and edits text files on the machine of the user.',
    properties: {
      command: commandOf('view', 'create', 'str_replace', 'insert', 'undo_edit'),
      ...editing,
      new_str: { type: 'string', description: 'For str_replace and insert: the new text.' },
    },
    required: ['command', 'path'],
  },
  {
    pattern: /^text_editor_\d{8}$/,
    description: 'Views, creates and edits text files on the machine of the user.',
    properties: { command: commandOf('view', 'create', 'str_replace', 'insert'), ...editing },
    required: ['command', 'path'],
  },
  {
    pattern: /^memory_\d{8}$/,
    description:
      'Keeps notes between conversations as files below /memories. View /memories before you begin, and store what a later conversation needs.',
    properties: {
      command: commandOf('view', 'create', 'str_replace', 'insert', 'delete', 'rename'),
      ...editing,
      old_path: { type: 'string', description: 'For rename: the present path.' },
      new_path: { type: 'string', description: 'For rename: the new path.' },
    },
    required: ['command'],
  },
]

/** The function for a typed tool; null for a tool that its vendor runs. */
export function clientFunction(type: string, name: string | null): FunctionTool | null {
  const tool = clientTools.find(({ pattern }) => pattern.test(type))
  if (tool === undefined || name === null) return null
  const { description, properties, required } = tool
  return {
    type: 'function',
    name,
    description,
    parameters: { type: 'object', properties, required },
    strict: false,
  }
}
