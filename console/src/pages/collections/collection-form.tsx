import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Collection } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Checkbox, SelectField, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { useQuery } from '../../ui/query.ts'
import { announce } from '../../ui/toasts.tsx'

/** A collection has files, one embedding model and one way to divide texts into passages. */
export function CollectionForm({
  collection,
  onSaved,
  onClose,
}: {
  /** Null: a new one. */
  collection: Collection | null
  onSaved: (saved: Collection) => void
  onClose: () => void
}) {
  const [name, setName] = useState(collection?.name ?? '')
  const [description, setDescription] = useState(collection?.description ?? '')
  const [isOpen, setOpen] = useState(collection?.access_mode === 'collection')
  const [model, setModel] = useState('')
  const [maxTokens, setMaxTokens] = useState('')
  const [overlap, setOverlap] = useState('')
  const models = useEmbeddingModels()
  const submit = async () => {
    const body = {
      name: name.trim(),
      description: description.trim() === '' ? null : description.trim(),
      access_mode: isOpen ? ('collection' as const) : ('files' as const),
    }
    const chunking =
      maxTokens === ''
        ? {}
        : { chunking: { max_tokens: Number(maxTokens), overlap_tokens: Number(overlap) } }
    const saved =
      collection === null
        ? await call('POST /v1/collections', {
            body: { ...body, ...chunking, ...(model === '' ? {} : { embedding_model: model }) },
          })
        : await call('PATCH /v1/collections/{name}', { path: { name: collection.id }, body })
    announce(text('collections.saved', { name: body.name }))
    onSaved(saved)
  }
  return (
    <FormDialog
      title={
        collection === null
          ? text('collections.create')
          : text('collections.edit', { name: collection.name })
      }
      submit={text(collection === null ? 'action.create' : 'action.save')}
      canSubmit={name.trim() !== ''}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label={text('collections.name')}
        hint={text('collections.name_hint')}
        value={name}
        onValue={setName}
      />
      <TextField
        label={text('collections.description')}
        hint={text('collections.description_hint')}
        value={description}
        onValue={setDescription}
      />
      <Checkbox
        label={text('collections.open')}
        hint={text('collections.open_hint')}
        checked={isOpen}
        onChecked={setOpen}
      />
      {collection === null && (
        <details class="option">
          <summary>{text('collections.index')}</summary>
          <div class="stack">
            <p class="small muted">{text('collections.index_hint')}</p>
            <SelectField
              label={text('collections.model')}
              value={model}
              onValue={setModel}
              options={[{ value: '', label: text('collections.configured') }, ...models]}
            />
            <div class="pair">
              <TextField
                type="number"
                min={1}
                label={text('collections.max_tokens')}
                placeholder={text('collections.configured')}
                value={maxTokens}
                onValue={setMaxTokens}
              />
              <TextField
                type="number"
                min={0}
                label={text('collections.overlap')}
                placeholder="0"
                value={overlap}
                onValue={setOverlap}
              />
            </div>
          </div>
        </details>
      )}
    </FormDialog>
  )
}

/** The models that turn texts into vectors, as options. */
export function useEmbeddingModels() {
  const models = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  return (models.data?.data ?? [])
    .filter(({ mode }) => mode === 'embed')
    .map(({ id }) => ({ value: id, label: id }))
}
