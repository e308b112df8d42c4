package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stead-project/stead/manifest"
	"github.com/stead-project/stead/proto"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

func editCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "edit KIND NAME",
		Short: "Change a set, service, budget, networkpolicy, quota or configmap in an editor, and apply it",
		Long: `Change a set, service, budget, networkpolicy, quota or configmap in an editor ($KUBE_EDITOR, $EDITOR, or vi), and
apply it. Nothing is done if the text is left as it was. If somebody else has changed the
object meanwhile, or it is refused, the text is kept in a file whose name is shown.`,
		Example: `  stead edit set etcd
  stead edit cm/etcd-entry`,
		ValidArgsFunction: c.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseTarget(args, "")
			if err != nil {
				return err
			}
			if why := notEdited[kind]; why != "" {
				return misuse("a %s cannot be edited; %s", kind, why)
			}
			return c.edit(cmd, kind, name)
		},
	}
}

// notEdited says what to do with kinds that have no manifest to edit.
var notEdited = map[string]string{
	proto.KindMember:   "edit its set: 'stead edit set NAME'",
	proto.KindSecret:   "its values are not shown; change the manifest and apply it",
	proto.KindVolume:   "see 'stead volume --help'",
	proto.KindNode:     "write 'stead label', 'stead taint' or 'stead cordon'",
	proto.KindEvent:    "it is a record of what happened",
	proto.KindRevision: "edit its set, or return to the revision: 'stead rollout undo SET --to-revision N'",
}

// edit gives an object to the editor, and applies what comes back.
func (c *cli) edit(cmd *cobra.Command, kind, name string) error {
	get := &proto.GetRequest{Kind: kind, Namespace: c.namespace, Name: name}
	was, err := c.control.Get(cmd.Context(), get)
	if err != nil {
		return err
	}
	before, generation, err := editable(was)
	if err != nil {
		return err
	}
	path, after, err := inEditor(cmd, kind+"-"+name, before)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) || len(bytes.TrimSpace(after)) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s was not edited; nothing was changed\n", kind, c.namespace, name)
		return os.Remove(path)
	}
	ctx := context.WithoutCancel(cmd.Context()) // a Ctrl-C was for the editor
	err = c.checkEdited(ctx, get, path, after, generation)
	var done *proto.ApplyResponse
	if err == nil {
		done, err = c.control.Apply(ctx, &proto.ApplyRequest{Namespace: c.namespace, Files: []*proto.File{{Name: path, Content: after}}})
	}
	if err != nil {
		return fmt.Errorf("%s\nyour text is kept in %s; after correcting it: stead apply -f %s", explainError(err), path, path)
	}
	for _, w := range done.GetWarnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+scalar.Plain(w))
	}
	printApplied(cmd.OutOrStdout(), done, false)
	return os.Remove(path)
}

// editable is the manifest of an object as YAML, and its generation. That of a set says itself what
// it was made from, which the server compares when it is applied.
func editable(o *proto.Object) (text []byte, generation int64, err error) {
	read, err := decode[any, any](o)
	if err != nil {
		return nil, 0, err
	}
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(o.GetJson(), &doc); err != nil {
		return nil, 0, err
	}
	delete(doc, "status")
	meta := records.ShownMeta{
		Name: read.Metadata.Name, Namespace: read.Metadata.Namespace, Labels: read.Metadata.Labels, Annotations: read.Metadata.Annotations,
	}
	if o.GetKind() == proto.KindSet {
		meta.UID, meta.Generation = read.Metadata.UID, read.Metadata.Generation
	}
	if doc["metadata"], err = json.Marshal(meta); err != nil {
		return nil, 0, err
	}
	whole, err := json.Marshal(doc)
	if err != nil {
		return nil, 0, err
	}
	text, err = manifest.JSONToYAML(whole)
	return text, read.Metadata.Generation, err
}

// inEditor lets the user edit text in a file, which remains.
func inEditor(cmd *cobra.Command, name string, text []byte) (path string, after []byte, err error) {
	f, err := os.CreateTemp("", "stead-edit-"+name+"-*.yaml")
	if err != nil {
		return "", nil, err
	}
	path = f.Name()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, errors.Join(err, os.Remove(path))
	}
	editor := cmp.Or(os.Getenv("KUBE_EDITOR"), os.Getenv("EDITOR"), "vi")
	run := exec.Command("sh", "-c", editor+` "$1"`, "sh", path)
	run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := run.Run(); err != nil {
		return "", nil, fmt.Errorf("the editor %q failed: %w; set EDITOR to another one; nothing was changed, the text is in %s", editor, err, path)
	}
	after, err = readManifest(path, nil)
	return path, after, err
}

// checkEdited refuses text that is about another object, or that was made from an older generation.
// Of sets, the server checks the latter when it writes.
func (c *cli) checkEdited(ctx context.Context, get *proto.GetRequest, path string, text []byte, generation int64) error {
	objects, problems := manifest.NamedObjects([]manifest.Source{{Name: path, Content: text}}, spec.Namespace(c.namespace))
	if len(problems) > 0 {
		return errors.New(joinedLines(problems))
	}
	same := func(o manifest.ObjectName) bool {
		return appliable[o.Kind] == get.GetKind() && string(o.Namespace) == get.GetNamespace() && o.Name == get.GetName()
	}
	if len(objects) != 1 || !same(objects[0]) {
		return fmt.Errorf("the text must be about %s %s/%s only; to make another object write a manifest and apply it", get.GetKind(), get.GetNamespace(), get.GetName())
	}
	if get.GetKind() == proto.KindSet {
		return nil
	}
	now, err := c.control.Get(ctx, get)
	if err != nil {
		return err
	}
	read, err := decode[any, any](now)
	if err == nil && read.Metadata.Generation != generation {
		err = fmt.Errorf("%s %s was changed meanwhile: generation %d, edited from %d", strings.ToLower(get.GetKind()), get.GetName(), read.Metadata.Generation, generation)
	}
	return err
}
