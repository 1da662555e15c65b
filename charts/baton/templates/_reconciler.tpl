{{/* The RegistrationReconciler that the operator makes: name and spec. */}}
{{- define "baton.reconciler" -}}
{{- $wanted := .Values.reconciler }}
{{- $own := printf "%s-reconciler" (include "baton.fullname" .) }}
{{- if not (or $wanted.database.existingSecret $wanted.database.url) }}
{{- fail "reconciler.database: needs a url or an existingSecret, with the URL of the role baton_reconciler" }}
{{- end }}
{{- $database := dict "secretRef" (dict
  "name" (default $own $wanted.database.existingSecret)
  "key" (ternary $wanted.database.key "DATABASE_URL" (ne $wanted.database.existingSecret ""))) }}
{{- $spec := dict
  "database" $database
  "mode" $wanted.mode
  "bucket" .Values.bucket
  "queues" (pick .Values.queues "ingest" "registrar" "results" "create") }}
{{- $aws := dict }}
{{- with .Values.aws.region }}{{ $_ := set $aws "region" . }}{{ end }}
{{- if or $wanted.aws.existingSecret $wanted.aws.accessKeyId }}
{{- $_ := set $aws "secretRef" (dict "name" (default (printf "%s-aws" $own) $wanted.aws.existingSecret)) }}
{{- end }}
{{- if $aws }}{{ $_ := set $spec "aws" $aws }}{{ end }}
{{- dict "name" $wanted.name "spec" (mergeOverwrite $spec (deepCopy $wanted.spec)) | toYaml }}
{{- end }}
