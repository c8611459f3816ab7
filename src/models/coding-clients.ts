import type { AvailableModel } from './model-resolver.ts'
import type { CodingModel } from './schema.ts'

/**
 * The model list for terminal coding clients, which configure their tools and context by it. They
 * discard the whole list when an entry lacks a field, so every required field is present.
 */
export function listForCodingClients(models: readonly AvailableModel[]): CodingModel[] {
  return models.filter(({ mode }) => mode === 'generate').map(render)
}

const reasoningLevels = [
  { effort: 'low', description: 'Thinks briefly: for small and clear tasks' },
  { effort: 'medium', description: 'Thinks as long as most tasks need' },
  { effort: 'high', description: 'Thinks long: for hard problems' },
]

/** Clients truncate the output of their tools to this many tokens. */
const toolOutputTokensMax = 10_000

const instructions = `You are a coding agent. You work on the user's machine through the tools that you are given.

Look before you change anything: read the files that a task touches and follow the habits of the code around them. Make the smallest change that does the task well. Change files with apply_patch where it is offered, and leave work that is not yours alone unless you are asked to touch it.

Go on until the task is done. Run the tests, the build or the program where there is a way to do so, and put right what fails. Where you need a decision that only the user can make, ask one short question.

When you are done, say in a few sentences what you changed, how you checked it, and what you could not check.`

function render(model: AvailableModel, index: number): CodingModel {
  const reasons = model.capabilities.includes('reasoning')
  return {
    slug: model.id,
    display_name: model.displayName,
    description: model.description,
    supported_reasoning_levels: reasons ? reasoningLevels : [],
    default_reasoning_level: reasons ? 'medium' : null,
    supports_reasoning_summaries: reasons,
    shell_type: 'shell_command',
    // Freeform tools work with every model: adapters send them as functions where necessary.
    apply_patch_tool_type: 'freeform',
    supports_parallel_tool_calls: true,
    experimental_supported_tools: [],
    support_verbosity: false,
    input_modalities: model.capabilities.includes('vision') ? ['text', 'image'] : ['text'],
    context_window: model.contextWindow,
    truncation_policy: { mode: 'tokens', limit: toolOutputTokensMax },
    visibility: 'list',
    supported_in_api: true,
    priority: index,
    base_instructions: instructions,
  }
}
