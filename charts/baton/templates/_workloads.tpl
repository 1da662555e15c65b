{{/*
The workloads, once: by the name of their values, the component in names and labels, the command, what they connect to
and what they are scaled by. `database` is whether a database URL is theirs; `aws` whether they ask AWS themselves.
*/}}
{{- define "baton.workloads" -}}
operator:
  component: operator
  command: [python, -m, baton.operator]
  token: true
  aws: true
  # one works, the others wait: more of them do no more
  fixed: true
  # the URL stands in the secret that a resource names
  reaches: [apiServer, database, aws]
ingestRelay:
  component: ingest-relay
  command: [baton, relay, --lane, ingest]
  database: baton_relay
  aws: true
  queues: true
  reaches: [database, aws]
  lane: ingest
registrarRelay:
  component: registrar-relay
  command: [baton, relay, --lane, registrar]
  database: baton_relay
  aws: true
  queues: true
  reaches: [database, aws]
  lane: registrar
extractor:
  component: extractor
  command: [baton, extractor]
  database: baton_extractor
  aws: true
  queues: true
  reaches: [database, aws]
  queue: ingest
registrar:
  component: registrar
  command: [baton, registrar]
  database: baton_registrar
  aws: true
  queues: true
  agent: true
  reaches: [database, aws, agent]
  queue: registrar
settler:
  component: settler
  command: [baton, settler]
  database: baton_settler
  aws: true
  queues: true
  reaches: [database, aws]
  queue: results
referenceAgent:
  component: agent
  command: [baton, agent]
  # signed addresses of S3 are all that it fetches
  agent: true
  reaches: [aws]
  port: 8085
{{- end }}

{{/* A workload's values: its own over the defaults. dict "root" $ "key" "extractor" */}}
{{- define "baton.values" -}}
{{- mergeOverwrite (deepCopy .root.Values.defaults) (deepCopy (index .root.Values .key)) | toYaml }}
{{- end }}

{{- define "baton.account" -}}
{{- if .values.serviceAccount.create -}}
{{ default (printf "%s-%s" (include "baton.fullname" .root) .component) .values.serviceAccount.name }}
{{- else -}}
{{ default "default" .values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* Whether the release keeps a secret of the workload's: what of its credentials stands in the values. */}}
{{- define "baton.kept" -}}
{{- $kept := dict }}
{{- if .spec.database }}
{{- with .values.database.url }}{{ $_ := set $kept "DATABASE_URL" . }}{{ end }}
{{- with .values.database.directUrl }}{{ $_ := set $kept "BATON_DATABASE_DIRECT_URL" . }}{{ end }}
{{- end }}
{{- if .spec.aws }}
{{- with .values.aws.accessKeyId }}{{ $_ := set $kept "AWS_ACCESS_KEY_ID" . }}{{ end }}
{{- with .values.aws.secretAccessKey }}{{ $_ := set $kept "AWS_SECRET_ACCESS_KEY" . }}{{ end }}
{{- end }}
{{- if .spec.agent }}
{{- with .root.Values.agent.token }}{{ $_ := set $kept "BATON_AGENT_TOKEN" . }}{{ end }}
{{- end }}
{{- if $kept }}{{ toYaml $kept }}{{ end }}
{{- end }}

{{/* One variable out of a secret. */}}
{{- define "baton.fromSecret" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key | quote }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end }}

{{/* What every container of the product is told. */}}
{{- define "baton.ambient" -}}
- name: BATON_LOG_FORMAT
  value: json
- name: BATON_HEALTH_HOST
  value: 0.0.0.0
- name: BATON_HEALTH_PORT
  value: {{ .Values.metrics.port | quote }}
{{- end }}

{{- define "baton.services" }}
{{- with .Values.aws.region }}
- name: AWS_REGION
  value: {{ . | quote }}
{{- end }}
{{- with .Values.aws.endpoints.sqs }}
- name: AWS_ENDPOINT_URL_SQS
  value: {{ . | quote }}
{{- end }}
{{- with .Values.aws.endpoints.s3 }}
- name: AWS_ENDPOINT_URL_S3
  value: {{ . | quote }}
{{- end }}
{{- with .Values.aws.endpoints.presign }}
- name: BATON_PRESIGN_ENDPOINT_URL
  value: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "baton.queues" -}}
- name: BATON_INGEST_QUEUE
  value: {{ .Values.queues.ingest | quote }}
- name: BATON_REGISTRAR_QUEUE
  value: {{ .Values.queues.registrar | quote }}
- name: BATON_RESULTS_QUEUE
  value: {{ .Values.queues.results | quote }}
- name: BATON_CREATE_QUEUES
  value: {{ .Values.queues.create | quote }}
- name: BATON_BUCKET
  value: {{ .Values.bucket | quote }}
{{- end }}

{{/* The variables of a workload's container. A name stands once, or the API server refuses it: the last one does. */}}
{{- define "baton.env" -}}
{{- $all := include "baton.variables" . | fromYamlArray }}
{{- $last := dict }}
{{- range $i, $each := $all }}{{ $_ := set $last $each.name $i }}{{ end }}
{{- $kept := list }}
{{- range $i, $each := $all }}
{{- if eq (int (index $last $each.name)) $i }}{{ $kept = append $kept $each }}{{ end }}
{{- end }}
{{- toYaml $kept }}
{{- end }}

{{- define "baton.variables" -}}
{{- $root := .root }}
{{- $values := .values }}
{{- $own := printf "%s-%s" (include "baton.fullname" $root) .component }}
{{- include "baton.ambient" $root }}
{{- if .spec.database }}
{{- $database := $values.database }}
{{- if not (or $database.existingSecret $database.url) }}
{{- fail (printf "%s.database: needs a url or an existingSecret, with the URL of the role %s" .key .spec.database) }}
{{- end }}
{{ include "baton.fromSecret" (dict "name" "DATABASE_URL" "secret" (default $own $database.existingSecret) "key" (ternary $database.key "DATABASE_URL" (ne $database.existingSecret ""))) }}
{{- if and $database.existingSecret $database.directKey }}
{{ include "baton.fromSecret" (dict "name" "BATON_DATABASE_DIRECT_URL" "secret" $database.existingSecret "key" $database.directKey) }}
{{- else if and (not $database.existingSecret) $database.directUrl }}
{{ include "baton.fromSecret" (dict "name" "BATON_DATABASE_DIRECT_URL" "secret" $own "key" "BATON_DATABASE_DIRECT_URL") }}
{{- end }}
{{- end }}
{{- if .spec.aws }}
{{- include "baton.services" $root }}
{{- end }}
{{- if .spec.queues }}
{{ include "baton.queues" $root }}
{{- end }}
{{- $aws := $values.aws }}
{{- if and .spec.aws (or $aws.existingSecret $aws.accessKeyId) }}
{{- $secret := default $own $aws.existingSecret }}
{{ include "baton.fromSecret" (dict "name" "AWS_ACCESS_KEY_ID" "secret" $secret "key" "AWS_ACCESS_KEY_ID") }}
{{ include "baton.fromSecret" (dict "name" "AWS_SECRET_ACCESS_KEY" "secret" $secret "key" "AWS_SECRET_ACCESS_KEY") }}
{{- if $aws.existingSecret }}
{{ include "baton.fromSecret" (dict "name" "AWS_SESSION_TOKEN" "secret" $secret "key" "AWS_SESSION_TOKEN" "optional" true) }}
{{- end }}
{{- end }}
{{- if .spec.agent }}
{{- $agent := $root.Values.agent }}
{{- if not (or $agent.token $agent.existingSecret) }}
{{- fail "agent: needs a token or an existingSecret that holds it" }}
{{- end }}
{{ include "baton.fromSecret" (dict "name" "BATON_AGENT_TOKEN" "secret" (default $own $agent.existingSecret) "key" (ternary $agent.key "BATON_AGENT_TOKEN" (ne $agent.existingSecret ""))) }}
{{- if eq .key "registrar" }}
{{- $url := $agent.url }}
{{- if and (not $url) $root.Values.referenceAgent.enabled }}
{{- $url = printf "http://%s-agent:8085" (include "baton.fullname" $root) }}
{{- end }}
- name: BATON_AGENT_URL
  value: {{ required "agent.url: needs the agent's address, or referenceAgent.enabled" $url | quote }}
{{- else }}
- name: BATON_REFERENCE_AGENT_HOST
  value: 0.0.0.0
- name: BATON_REFERENCE_AGENT_PORT
  value: {{ .spec.port | quote }}
{{- end }}
{{- end }}
{{- if eq .key "operator" }}
- name: BATON_OPERATOR_LEASE
  value: {{ $own }}
{{- if $values.clusterWide }}
- name: BATON_OPERATOR_CLUSTER_WIDE
  value: "true"
{{- end }}
{{- if $values.reading.enabled }}
- name: BATON_OPERATOR_READING_PORT
  value: {{ $values.reading.port | quote }}
{{- end }}
{{- if $root.Values.reconciler.create }}
- name: BATON_OPERATOR_DEFAULT_RECONCILER
  value: {{ include "baton.reconciler" $root | fromYaml | toJson | quote }}
{{- end }}
{{- end }}
- name: OTEL_SERVICE_NAME
  value: {{ $own }}
{{- range $name, $value := mergeOverwrite (dict) $root.Values.settings $values.settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- with concat $root.Values.extraEnv $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
