import { useState } from 'preact/hooks'
import type { ResponseOf } from '../../api/call.ts'
import type { Model } from '../../api/generated/types.ts'
import { href } from '../../shell/router.ts'
import { format, text } from '../../texts/texts.ts'
import { TextField } from '../../ui/field.tsx'
import { Empty } from '../../ui/notice.tsx'
import type { Query } from '../../ui/query.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Segments } from '../../ui/tabs.tsx'

type Models = ResponseOf<'GET /v1/models'>
type Rule = { readonly models: string; readonly groups: readonly string[] }
type Mode = 'all' | Model['mode']

const modes: readonly Mode[] = ['all', 'generate', 'embed', 'rerank', 'transcribe', 'speak']

/** Every model that the user may call, and who else may. */
export function Catalogue({ models, rules }: { models: Query<Models>; rules: readonly Rule[] }) {
  const [search, setSearch] = useState('')
  const [mode, setMode] = useState<Mode>('all')
  const all = models.data?.data
  const searched = search.trim().toLowerCase()
  const shown = all?.filter(
    (model) =>
      (mode === 'all' || model.mode === mode) &&
      `${model.id} ${model.name ?? ''}`.toLowerCase().includes(searched),
  )
  const present = modes.filter((one) => one === 'all' || all?.some((model) => model.mode === one))
  return (
    <section class="stack tight">
      <div class="row between">
        <h2>{text('models.catalogue')}</h2>
        <Segments
          label={text('models.mode')}
          choices={present.map((name) => ({ name, label: text(`models.mode.${name}`) }))}
          selected={mode}
          onSelect={setMode}
        />
      </div>
      <div class="narrow">
        <TextField label={text('models.search')} type="search" value={search} onValue={setSearch} />
      </div>
      <Table
        label={text('models.catalogue')}
        columns={columns(rules)}
        query={models}
        rows={shown}
        keyOf={({ id }) => id}
        empty={
          <Empty icon="models" title={text('models.none')}>
            {text(all?.length === 0 ? 'models.none_hint' : 'models.none_found')}
          </Empty>
        }
      />
    </section>
  )
}

const columns = (rules: readonly Rule[]): readonly Column<Model>[] => [
  {
    name: 'id',
    label: text('models.name'),
    cell: ({ id, name, description, alias_of: alias }) => (
      <div>
        <strong>{name ?? id}</strong>
        {name !== undefined && <div class="small muted mono">{id}</div>}
        {alias !== undefined && (
          <div class="small muted">{text('models.alias', { model: alias })}</div>
        )}
        {description && <div class="small muted">{description}</div>}
      </div>
    ),
  },
  { name: 'mode', label: text('models.mode'), cell: ({ mode }) => text(`models.mode.${mode}`) },
  {
    name: 'capabilities',
    label: text('models.capabilities'),
    cell: ({ capabilities }) => (
      <span class="row">
        {capabilities.map((capability) => (
          <span key={capability} class="tag">
            {capability}
          </span>
        ))}
      </span>
    ),
  },
  {
    name: 'context',
    label: text('models.context'),
    align: 'right',
    cell: ({ context_window: context }) => (context === null ? '–' : format.compact(context)),
  },
  { name: 'owner', label: text('models.owner'), cell: ({ owned_by: owner }) => owner },
  {
    name: 'access',
    label: text('models.access'),
    cell: ({ id }) => {
      const groups = groupsOf(id, rules)
      return groups.length === 0 ? (
        <span class="muted">{text('models.everyone')}</span>
      ) : (
        groups.join(', ')
      )
    },
  },
  actionsColumn(({ id, mode }) => [
    mode in tryPages && {
      label: text(mode === 'generate' ? 'models.try_name' : 'models.try_voice', { name: id }),
      word: text('models.try'),
      href: href(`${tryPages[mode]}model=${encodeURIComponent(id)}`),
    },
  ]),
]

/** Where a model can be tried, by its mode. */
const tryPages: Readonly<Partial<Record<Model['mode'], string>>> = {
  generate: '/playground?',
  speak: '/speech?tab=speak&',
}

/** The groups that may use a model by the rules that name it; several rules add up. */
function groupsOf(model: string, rules: readonly Rule[]): string[] {
  const matching = rules.filter(({ models }) => patternOf(models).test(model))
  return [...new Set(matching.flatMap(({ groups }) => groups))]
}

function patternOf(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`)
}
