{{/* What the restricted pod security standard asks of a container, and a root that cannot be written. */}}
{{- define "baton.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The pod of a workload: dict "root" "key" "spec" "component" "values". */}}
{{- define "baton.pod" -}}
{{- $root := .root }}
{{- $values := .values }}
serviceAccountName: {{ include "baton.account" . }}
automountServiceAccountToken: {{ default false .spec.token }}
# a Service's address would spell variables that are read as settings
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
securityContext:
  {{- mergeOverwrite (deepCopy $values.podSecurityContext) (dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault")) | toYaml | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- if $values.topologySpreadConstraints }}
  {{- toYaml $values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "baton.selector" . | nindent 8 }}
  {{- end }}
containers:
  - name: {{ .component }}
    image: {{ include "baton.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command: {{ toJson .spec.command }}
    env:
      {{- include "baton.env" . | nindent 6 }}
    {{- with $values.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - {name: health, containerPort: {{ $root.Values.metrics.port }}}
      {{- with .spec.port }}
      - {name: agent, containerPort: {{ . }}}
      {{- end }}
    startupProbe:
      httpGet: {path: /startupz, port: health}
      periodSeconds: 5
      timeoutSeconds: 3
      failureThreshold: {{ div (add $values.probes.startupSeconds 4) 5 }}
    livenessProbe:
      httpGet: {path: /livez, port: health}
      periodSeconds: {{ $values.probes.livenessPeriodSeconds }}
      timeoutSeconds: 5
      failureThreshold: {{ $values.probes.livenessFailureThreshold }}
    readinessProbe:
      httpGet: {path: /readyz, port: health}
      periodSeconds: 5
      timeoutSeconds: 3
      failureThreshold: 2
    resources:
      {{- toYaml $values.resources | nindent 6 }}
    securityContext:
      {{- include "baton.confined" . | nindent 6 }}
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
      - {name: scratch, mountPath: /tmp}
      {{- with $values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: scratch
    emptyDir: {sizeLimit: {{ $values.scratch }}}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
