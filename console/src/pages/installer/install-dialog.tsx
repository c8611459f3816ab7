import { useState } from 'preact/hooks'
import { call, type RequestOf } from '../../api/call.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useAction } from '../../ui/query.ts'
import { announce } from '../../ui/toasts.tsx'

type Source = NonNullable<RequestOf<'POST /v1/model-installer/downloads'>['body']['source']>

const sources: readonly Source[] = ['hub', 'url', 'oci', 'local', 'upstream']

export function InstallDialog({
  onClose,
  onStarted,
}: {
  onClose: () => void
  onStarted: () => void
}) {
  const [source, setSource] = useState<Source>('hub')
  const [model, setModel] = useState('')
  const [name, setName] = useState('')
  const [detail, setDetail] = useState('')
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const submit = () =>
    run(async () => {
      const body = {
        model: model.trim(),
        source,
        ...(name.trim() === '' ? {} : { name: name.trim() }),
        ...detailOf(source, detail.trim()),
      }
      try {
        const started = await call('POST /v1/model-installer/downloads', { body })
        const isThere = 'status' in started && started.status === 'already_installed'
        announce(text(isThere ? 'installer.already' : 'installer.started', { model: body.model }))
        onStarted()
      } catch (error) {
        setFault(error)
      }
    })
  return (
    <Dialog
      title={text('installer.install')}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <Button onClick={onClose}>{text('action.cancel')}</Button>
          <Button kind="primary" type="submit" disabled={isBusy || model.trim() === ''}>
            {text('installer.install')}
          </Button>
        </>
      }
    >
      <SelectField
        label={text('installer.source')}
        value={source}
        onValue={(value) => setSource(value as Source)}
        options={sources.map((value) => ({ value, label: text(`installer.source.${value}`) }))}
      />
      <TextField
        label={text('installer.model')}
        hint={text(`installer.hint.${source}`)}
        value={model}
        onValue={setModel}
        spellcheck={false}
        autocomplete="off"
      />
      {source !== 'local' && source !== 'oci' && (
        <TextField
          label={text(`installer.detail.${source}`)}
          value={detail}
          onValue={setDetail}
          spellcheck={false}
          autocomplete="off"
        />
      )}
      <TextField
        label={text('installer.name')}
        hint={text('installer.name_hint')}
        value={name}
        onValue={setName}
        spellcheck={false}
        autocomplete="off"
      />
      {fault !== undefined && <Fault error={fault} />}
    </Dialog>
  )
}

/** The one further field that a source has. */
function detailOf(source: Source, detail: string) {
  if (detail === '') return {}
  if (source === 'hub') return { files: detail.split(/[\s,]+/).filter(Boolean) }
  if (source === 'url') return { sha256: detail }
  return source === 'upstream' ? { upstream: detail } : {}
}
