import type { FunctionTool } from '#inference/request.ts'
import type { HostedTools } from '#inference/tool-loop/hosted-tools.ts'
import { chooseFunction, freeName } from '#inference/tool-loop/own-function.ts'
import { createCiter } from './cite.ts'
import { createPassageRegistry } from './passages.ts'
import type { FileSearchRequest } from './request.ts'
import { type SearchCallDeps, searchFiles } from './search-call.ts'

export type FileSearch = ReturnType<typeof createFileSearch>

/** Also the name of calls in earlier turns. */
export const fileSearchName = 'file_search'

/** The hosted tool with which a model searches files. */
export function createFileSearch(deps: SearchCallDeps) {
  return {
    /** For one request. `takenNames` are the names of the client's own tools. */
    open({ tool, choice, found }: FileSearchRequest, takenNames: ReadonlySet<string>): HostedTools {
      const registry = createPassageRegistry(found)
      const name =
        tool === null || choice === 'forbidden' ? null : freeName(fileSearchName, takenNames)
      return {
        opening: [],
        definitions: () => (name === null ? [] : [describe(name)]),
        resolveToolChoice: (wanted) =>
          name === null ? wanted : chooseFunction(wanted, choice, name),
        call: (called) =>
          tool === null || called !== name ? null : searchFiles(deps, { tool, registry }),
        show: createCiter(registry),
        close() {},
      }
    },
  }
}

function describe(name: string): FunctionTool {
  return {
    type: 'function',
    name,
    description:
      'Finds passages in the documents of this conversation. Use it whenever they may contain the answer.',
    parameters: {
      type: 'object',
      properties: {
        queries: {
          type: 'array',
          items: { type: 'string' },
          description:
            'Short questions or keywords in the language of the documents; several if the question has several aspects.',
        },
      },
      required: ['queries'],
      additionalProperties: false,
    },
    strict: null,
  }
}
